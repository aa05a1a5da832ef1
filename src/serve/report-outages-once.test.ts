import { expect, test } from "vitest";
import { HostError } from "../model/errors.ts";
import { reportOutagesOnce } from "./report-outages-once.ts";

const connectionError = (detail: string) => new HostError({ code: "DROVER-STA-008", message: detail });
const lockError = () => new HostError({ code: "DROVER-STA-003", message: "locked" });

test("reports each code once per outage, the recovery, and every defect", async () => {
  const lines: string[] = [];
  let hasRecovered = false;
  const outages = reportOutagesOnce({
    report: (error, where) => lines.push(`${where}: ${error instanceof Error ? error.message : String(error)}`),
    isAvailable: async () => hasRecovered,
    quietMs: 0,
    everyMs: 5,
  });
  for (const detail of ["read ECONNRESET", "connect ECONNREFUSED", "write EPIPE"])
    outages.report(connectionError(detail), "database");
  outages.report(lockError(), "dispatch");
  for (let times = 0; times < 2; times += 1) outages.report(new TypeError("x is not a function"), "get /runs");
  expect(lines).toEqual([
    "database: read ECONNRESET",
    "dispatch: locked",
    "get /runs: x is not a function",
    "get /runs: x is not a function",
  ]);
  hasRecovered = true;
  await expect.poll(() => lines.at(-1)).toMatch(/^record: .* again; 2 further/);
  outages.report(connectionError("once more"), "database");
  expect(lines.at(-1)).toBe("database: once more");
  outages.stop();
});
