import { expect, test } from "vitest";
import { PortError } from "../../model/port-error.ts";
import { isLeaseOver } from "./lease-watch.ts";
import { portFault } from "../port/port-fault.ts";

test.each([
  ["answered lately", { silentMs: 900, reportingMs: 900, lastFault: null }, false],
  ["no answer to the last reports", { silentMs: 1001, reportingMs: 0, lastFault: "silent" }, true],
  ["a report that hangs", { silentMs: 1001, reportingMs: 800, lastFault: null }, true],
  ["was asleep and has just asked", { silentMs: 60_000, reportingMs: 5, lastFault: null }, false],
  ["nobody listens", { silentMs: 60_000, reportingMs: 0, lastFault: "down" }, false],
] as const)("the lease of a runner: %s", (_what, state, over) => {
  expect(isLeaseOver(state, 1000)).toBe(over);
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
])("%s means %s", (error, fault) => expect(portFault(error)).toBe(fault));
