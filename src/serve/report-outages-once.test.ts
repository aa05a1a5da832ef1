import { expect, test } from "vitest";
import { HostError } from "../model/errors.ts";
import { reportOutagesOnce } from "./report-outages-once.ts";

const away = (detail: string) => new HostError({ code: "DROVER-STA-008", message: detail });
const locked = () => new HostError({ code: "DROVER-STA-003", message: "locked" });

test("each code is told once in an outage, its end too, and the next outage again; defects always", async () => {
  const said: string[] = [];
  let back = false;
  const outages = reportOutagesOnce({
    tell: (error, where) => said.push(`${where}: ${error instanceof Error ? error.message : String(error)}`),
    isBack: async () => back,
    quietMs: 0,
    everyMs: 5,
  });
  for (const detail of ["read ECONNRESET", "connect ECONNREFUSED", "write EPIPE"])
    outages.tell(away(detail), "database");
  outages.tell(locked(), "dispatch");
  for (let times = 0; times < 2; times += 1) outages.tell(new TypeError("x is not a function"), "get /runs");
  expect(said).toEqual([
    "database: read ECONNRESET",
    "dispatch: locked",
    "get /runs: x is not a function",
    "get /runs: x is not a function",
  ]);
  back = true;
  await expect.poll(() => said.at(-1)).toMatch(/^record: .* again; 2 more/);
  outages.tell(away("once more"), "database");
  expect(said.at(-1)).toBe("database: once more");
  outages.stop();
});
