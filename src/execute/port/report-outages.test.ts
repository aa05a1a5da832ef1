import { expect, test } from "vitest";
import { createMemoryCoordinator } from "../../../test/fixtures/execute/memory-port.ts";
import { PortError } from "../../model/port-error.ts";
import { classifyPortError } from "./port-failure.ts";
import { reportOutages } from "./report-outages.ts";

const report = { runner_id: "r", epoch: 1, held: [], as_of_claim: null, events: [], partials: [], finishes: [] };

test("reports an outage once for each port call, however it fails, and the next outage again", async () => {
  const lines: string[] = [];
  const answering = { ...createMemoryCoordinator().port, report: async () => ({ acked: [], fenced: [], abandon: [] }) };
  const { port, report: reportFailure } = reportOutages(answering, "echo", (line) => lines.push(line));
  const fail = (call: string, portCall: "poll" | "report" = "report"): void => {
    const error = new PortError("away", `it did not answer: ${call} ECONNRESET`, { code: "ECONNRESET" });
    reportFailure(portCall, error, classifyPortError(error));
  };
  for (const call of ["read", "write", "connect", "read", "write"]) fail(call);
  expect(lines).toEqual(["report failed (down): it did not answer: read ECONNRESET"]);
  fail("read", "poll");
  expect(lines).toHaveLength(2);
  await port.report(report);
  await port.report(report);
  fail("connect", "poll");
  expect(lines.slice(2)).toEqual(["connected to the coordinator again (profile echo)"]);
  fail("connect");
  expect(lines.slice(3)).toEqual(["report failed (down): it did not answer: connect ECONNRESET"]);
});

test("reports a refused connection, the silence after it and each distinct refusal once", () => {
  const lines: string[] = [];
  const { report: reportFailure } = reportOutages(createMemoryCoordinator().port, "echo", (line) => lines.push(line));
  const down = new PortError("away", "refused", { code: "ECONNREFUSED" });
  const silent = new PortError("away", "no answer within 5000 ms");
  const [one, other] = [new PortError("refused", "body.slots"), new PortError("refused", "body.name")];
  for (const error of [down, silent, down, silent, one, other, one])
    reportFailure("report", error, classifyPortError(error));
  expect(lines).toEqual([
    "report failed (down): refused",
    "report failed (silent): no answer within 5000 ms",
    "report failed (refused): body.slots",
    "report failed (refused): body.name",
  ]);
});
