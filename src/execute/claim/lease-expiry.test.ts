import { expect, test } from "vitest";
import { PortError } from "../../model/port-error.ts";
import { isUnansweredFor } from "./lease-expiry.ts";
import { classifyPortError } from "../port/port-failure.ts";

test.each([
  ["is valid after a recent answer", { silentMs: 900, reportingMs: 900, lastFailure: null }, false],
  ["expires when the last reports got no answer", { silentMs: 1001, reportingMs: 0, lastFailure: "silent" }, true],
  ["expires while a report hangs", { silentMs: 1001, reportingMs: 800, lastFailure: null }, true],
  [
    "is valid when a suspended runner has only just sent its next report",
    { silentMs: 60_000, reportingMs: 5, lastFailure: null },
    false,
  ],
  [
    "is valid while nothing listens at the coordinator's address",
    { silentMs: 60_000, reportingMs: 0, lastFailure: "down" },
    false,
  ],
] as const)("a runner's lease %s", (_title, state, over) => {
  expect(isUnansweredFor(state, 1000)).toBe(over);
});

const systemError = (code: string) => Object.assign(new Error(code), { code });
test.each([
  [new PortError("old_epoch", "x"), "register"],
  [new PortError("unknown_runner", "x"), "register"],
  [new PortError("duplicate_runner", "x"), "duplicate"],
  [new PortError("unauthorized", "x"), "refused"],
  [new PortError("away", "x", systemError("ECONNREFUSED")), "down"],
  [new PortError("away", "x", { status: 503 }), "down"],
  [new PortError("away", "x", new AggregateError([systemError("ECONNREFUSED"), systemError("ECONNREFUSED")])), "down"],
  [new PortError("away", "x", systemError("ETIMEDOUT")), "silent"],
  [new Error("anything"), "silent"],
])("classifies %s as %s", (error, fault) => expect(classifyPortError(error)).toBe(fault));
