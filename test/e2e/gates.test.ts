// More small versions of the rows of docs/torture.md. Those that mostly wait run concurrently.
import { beforeAll, describe, expect, test } from "vitest";
import { auditRows } from "../../torture/audit-rows.ts";
import { testBombs } from "../../torture/bombs.ts";
import { busyCores } from "../../torture/busy-cores.ts";
import { conversationRunnersKilled } from "../../torture/conversations.ts";
import { fileEscapes } from "../../torture/file-escapes.ts";
import type { Finding, Tools } from "../../torture/finding.ts";
import { idle } from "../../torture/idle.ts";
import { injection } from "../../torture/injection.ts";
import { ioFaults } from "../../torture/io-faults.ts";
import { databaseSilence, testFrozenCoordinator } from "../../torture/outage.ts";
import { secrets } from "../../torture/secrets.ts";
import { soak } from "../../torture/soak.ts";
import { uploads } from "../../torture/uploads.ts";
import { accessRules } from "../../torture/access-rules.ts";
import { createTortureTools } from "./torture-tools.ts";

let sqlite: Tools;
let postgres: Tools;
beforeAll(async () => {
  sqlite = await createTortureTools("sqlite");
  postgres = { ...sqlite, engine: "postgres" };
});

function expectFinding({ broken, seen }: Finding, expectedCounts: Record<string, number>): void {
  expect(broken).toEqual([]);
  expect(seen).toMatchObject(expectedCounts);
}

describe.concurrent("concurrently", () => {
  test("S1: file tools reach nothing outside their workspace", async () => {
    const finding = await fileEscapes({ vectors: 6, raceSeconds: 0.5 }, sqlite);
    expectFinding(finding, { escapes: 0 });
    expect(finding.seen["refused"]).toBeGreaterThan(50);
    expect(finding.seen["swaps"]).toBeGreaterThan(10);
  });

  test("R4: a conversation continues on another runner after a kill, and nothing is executed twice", async () => {
    const finding = await conversationRunnersKilled({ runs: 1, atOnce: 2, losses: 1 }, postgres);
    expectFinding(finding, { runs: 2, kills: 2, "carried out twice": 0, "answers asked for again": 0 });
  });

  test("R5: no lease expires while all cores are busy", async () => {
    expectFinding(await busyCores({ runs: 4, seconds: 4 }, postgres), { runs: 4, expiries: 0 });
  });

  test("R7: a frozen coordinator costs no run and no line", async () => {
    expectFinding(await testFrozenCoordinator({ runs: 2, seconds: 8, times: { leaseMs: 20_000 } }, postgres), {
      "runs lost": 0,
      "runs with lines lost": 0,
    });
  });

  test("R7: a runner that waits at a frozen coordinator takes work from another one", async () => {
    const size = { waiting: 1, times: { keepaliveMs: 900 }, withinMs: 60_000 };
    expectFinding(await idle(size, postgres), { "waited there": 1, "not back": 0 });
  });

  test("R7: an unresponsive database costs no run and no line", async () => {
    expectFinding(await databaseSilence({ runs: 2, seconds: 8, times: { leaseMs: 60_000 } }, postgres), {
      "runs lost": 0,
    });
  });

  test("R9: a full disk damages nothing, and every reported error is true", async () => {
    expectFinding(await ioFaults({ runs: 2, seconds: 2, only: "disk full" }, sqlite), { "disk full, runs lost": 0 });
  });

  test("R9: a locked database damages nothing", async () => {
    const finding = await ioFaults({ runs: 2, seconds: 7, only: "locked" }, postgres);
    expectFinding(finding, { "locked, runs lost": 0 });
    expect(finding.seen["locked, refused"]).toBeGreaterThan(0);
  });

  test("R9: a temporarily read-only database damages nothing", async () => {
    expectFinding(await ioFaults({ runs: 2, seconds: 2, only: "read-only" }, postgres), { "read-only, runs lost": 0 });
  });

  test("R8: several writers add their audit rows to one chain", async () => {
    expectFinding(await auditRows({ rows: 60 }, postgres), { rows: 60, "missing on the record": 0 });
  });

  test("R11: resource usage does not grow with the number of runs", async () => {
    expectFinding(await soak({ runs: 60, settleMs: 50 }, postgres), { runs: 60 });
  });

  test("S2: hostile values reach every executor unchanged", async () => {
    expectFinding(await injection({ values: 3 }, postgres), { values: 3, misread: 0 });
  });

  test("S4: a token ended at one coordinator is refused at the others", async () => {
    expectFinding(await accessRules({ rounds: 8 }, postgres), { "tokens ended": 8, "answered otherwise": 0 });
  });

  test("S6: the secrets that a run prints appear nowhere", async () => {
    expectFinding(await secrets({ canaries: 30, runs: 2 }, postgres), { runs: 2, found: 0 });
  });

  test("S11: hostile uploads leave nothing outside or in part, and stored files come back from any coordinator", async () => {
    expectFinding(await uploads({ rounds: 2, kills: 1 }, postgres), { "outside, partial or changed": 0 });
  });
});

test("K3: ends bombs for exceeding their limits", async () => {
  const size = { each: 1, outputMb: 20, files: 3000, idleMs: 200 };
  const seen = { "one file": 1, cpu: 1, disk: 1, files: 1, "runs over disk and files": 2 };
  expectFinding(await testBombs(size, sqlite), seen);
});
