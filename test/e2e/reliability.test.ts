// Small versions of the rows of docs/torture.md. `npm run torture` runs them at full size and also judges times.
import { beforeAll, expect, test } from "vitest";
import { coordinatorKilled } from "../../torture/coordinator-killed.ts";
import { ignoredSigterm } from "../../torture/ignored-sigterm.ts";
import { drain } from "../../torture/drain.ts";
import { escapes } from "../../torture/escapes.ts";
import type { Finding, Tools } from "../../torture/finding.ts";
import { testForgeries } from "../../torture/forgeries.ts";
import { fuzz } from "../../torture/fuzz.ts";
import { largeEvents } from "../../torture/large-events.ts";
import { manyReaders } from "../../torture/many-readers.ts";
import { manyWriters } from "../../torture/many-writers.ts";
import { outage } from "../../torture/outage.ts";
import { questions } from "../../torture/questions.ts";
import { replay } from "../../torture/replay.ts";
import { runnerKilled } from "../../torture/runner-killed.ts";
import { schedules } from "../../torture/schedules.ts";
import { staleWriter } from "../../torture/stale-writer.ts";
import { hostHas } from "../fixtures/process/host.ts";
import { createTortureTools } from "./torture-tools.ts";

let tools: Tools;
beforeAll(async () => {
  tools = await createTortureTools("sqlite");
});

function expectFinding({ broken, seen }: Finding, expectedCounts: Record<string, number>): void {
  expect(broken).toEqual([]);
  expect(seen).toMatchObject(expectedCounts);
}

test("R1, R2, R8: a killed coordinator loses no run, executes none twice, and all of them are recorded", async () => {
  expectFinding(await coordinatorKilled({ kills: 3, runs: 40 }, tools), { kills: 3, runs: 40, executions: 40 });
});

test("questions: loses none, accepts no second answer, and runs no command without approval", async () => {
  expectFinding(await questions({ runs: 3, questions: 4, kills: 3 }, tools), { kills: 3, runs: 3 });
});

test("schedules: every slot has one history line and at most one run while the coordinator restarts", async () => {
  const finding = await schedules({ schedules: 8, seconds: 5 }, tools);
  expectFinding(finding, { schedules: 8 });
  expect(finding.seen["fired"]).toBeGreaterThan(0);
});

test("R3: refuses what a runner sends after its lease has expired, and records that", async () => {
  const finding = await staleWriter({ stops: 4, lanes: 2, leaseMs: 4000 }, tools);
  expectFinding(finding, { stops: 4, "stale writes accepted": 0 });
  expect(finding.seen["refused and on the record"]).toBeGreaterThan(0);
});

test("R4: a run whose runner is killed is requeued or fails, and leaves nothing behind", async () => {
  expectFinding(await runnerKilled({ kills: 2, atOnce: 2 }, tools), {
    kills: 2,
    requeued: 1,
    "failed as runner_lost": 1,
  });
});

test("R6: a runner finishes its runs after SIGTERM and starts no new ones", async () => {
  expectFinding(await drain({ terms: 1, atOnce: 1 }, tools), { drains: 1 });
});

test("R7: runs continue while the coordinator is down, and lose nothing", async () => {
  expectFinding(await outage({ runs: 6, seconds: 5 }, tools), { "runs under way": 6 });
});

test("R8: everything that eight processes ran is recorded, although some were killed", async () => {
  const finding = await manyWriters({ executions: 400, kills: 3 }, tools);
  expectFinding(finding, { killed: 3, "off the record": 0, "without an end": 0 });
  expect(finding.seen["acknowledged"]).toBeGreaterThanOrEqual(400);
});

test("disconnected readers get every line once and in order", async () => {
  expectFinding(await manyReaders({ lines: 20_000, readers: 5, cutsEach: 10 }, tools), { cuts: 50 });
});

test("R10: a runner's requests have the same effect when they arrive three times and out of order", async () => {
  expectFinding(await replay({ runs: 20 }, tools), { runs: 20, executions: 21 });
});

// Weaker isolation levels do not promise this.
if (hostHas("pid")) {
  test("K1: no process of an ended command is alive, whatever it tried", async () => {
    expectFinding(await escapes({ kills: 16 }, tools), { "timeouts and cancels": 16 });
  });
}

test("K2: a run that ignores SIGTERM ends after its timeout", async () => {
  expectFinding(await ignoredSigterm({ runs: 3, atOnce: 3 }, tools), { runs: 3 });
});

test("H1: forged starts, ends and times of a runner change nobody else's record", async () => {
  expectFinding(await testForgeries({ tries: 22 }, tools), { tries: 22, "wild times": 2 });
});

test.each(["sqlite", "postgres"] as const)(
  "M2: bounds or refuses the largest possible reports and registrations, and keeps pages small, on %s",
  async (engine) => {
    expectFinding(await largeEvents({ rounds: 1, idleMs: 100 }, { ...tools, engine }), { requests: 21 });
  },
);

test("S3: refuses generated requests and bombs with a known code", async () => {
  const finding = await fuzz({ requests: 500 }, tools);
  expectFinding(finding, { requests: 500, "5xx": 0 });
  // The generated requests must differ enough to get both kinds of responses.
  expect(finding.seen["4xx"]).toBeGreaterThan(25);
  expect(finding.seen["2xx"]).toBeGreaterThan(10);
});
