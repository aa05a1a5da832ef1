// The promises of docs/torture.md at a size that fits; `npm run torture` has the full one, and judges times too.
import { beforeAll, expect, test } from "vitest";
import { coordinatorKilled } from "../../torture/coordinator-killed.ts";
import { ignoredSigterm } from "../../torture/ignored-sigterm.ts";
import { drain } from "../../torture/drain.ts";
import { escapes } from "../../torture/escapes.ts";
import type { Finding, Tools } from "../../torture/finding.ts";
import { forging } from "../../torture/forgeries.ts";
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
import { tortureTools } from "./torture-tools.ts";

let tools: Tools;
beforeAll(async () => {
  tools = await tortureTools("sqlite");
});

function expectWhole({ broken, seen }: Finding, counted: Record<string, number>): void {
  expect(broken).toEqual([]);
  expect(seen).toMatchObject(counted);
}

test("R1, R2, R8: a coordinator that is killed loses no run, none is carried out twice, all are on the record", async () => {
  expectWhole(await coordinatorKilled({ kills: 3, runs: 40 }, tools), { kills: 3, runs: 40, executions: 40 });
});

test("questions: none is lost or answered twice, and no command runs without its approval", async () => {
  expectWhole(await questions({ runs: 3, questions: 4, kills: 3 }, tools), { kills: 3, runs: 3 });
});

test("schedules: every slot has one line and one run at most, through restarts of the coordinator", async () => {
  const finding = await schedules({ schedules: 8, seconds: 5 }, tools);
  expectWhole(finding, { schedules: 8 });
  expect(finding.seen["fired"]).toBeGreaterThan(0);
});

test("R3: what a runner brings after its lease is refused, and that is on the record", async () => {
  const finding = await staleWriter({ stops: 4, lanes: 2, leaseMs: 4000 }, tools);
  expectWhole(finding, { stops: 4, "stale writes accepted": 0 });
  expect(finding.seen["refused and on the record"]).toBeGreaterThan(0);
});

test("R4: a run whose runner is killed goes back or fails, and nothing of it is left", async () => {
  expectWhole(await runnerKilled({ kills: 2, atOnce: 2 }, tools), {
    kills: 2,
    requeued: 1,
    "failed as runner_lost": 1,
  });
});

test("R6: a runner that is told to end lets its runs end, and begins nothing new", async () => {
  expectWhole(await drain({ terms: 1, atOnce: 1 }, tools), { drains: 1 });
});

test("R7: while the coordinator is away runs go on, and nothing of them is lost", async () => {
  expectWhole(await outage({ runs: 6, seconds: 5 }, tools), { "runs under way": 6 });
});

test("R8: what eight processes ran is on their record, also where some were killed", async () => {
  const finding = await manyWriters({ executions: 400, kills: 3 }, tools);
  expectWhole(finding, { killed: 3, "off the record": 0, "without an end": 0 });
  expect(finding.seen["acknowledged"]).toBeGreaterThanOrEqual(400);
});

test("readers that are cut off have every line once, in order", async () => {
  expectWhole(await manyReaders({ lines: 20_000, readers: 5, cutsEach: 10 }, tools), { cuts: 50 });
});

test("R10: a runner's requests sent three times and shuffled are as if sent once", async () => {
  expectWhole(await replay({ runs: 20 }, tools), { runs: 20, executions: 21 });
});

// a weaker level of isolation does not promise it
if (hostHas("pid")) {
  test("K1: nothing is alive when an escape was ended", async () => {
    expectWhole(await escapes({ kills: 16 }, tools), { "timeouts and cancels": 16 });
  });
}

test("K2: a run that ignores SIGTERM ends after its timeout", async () => {
  expectWhole(await ignoredSigterm({ runs: 3, atOnce: 3 }, tools), { runs: 3 });
});

test("H1: a runner forges starts, ends and times, and nobody else's record is changed", async () => {
  expectWhole(await forging({ tries: 22 }, tools), { tries: 22, "wild times": 2 });
});

test("M2: reports and registrations as large as can be are refused or bounded, and pages stay small", async () => {
  expectWhole(await largeEvents({ rounds: 1, idleMs: 100 }, tools), { requests: 21 });
});

test("S3: requests made from the OpenAPI document, and bombs, are refused by name", async () => {
  const finding = await fuzz({ requests: 500 }, tools);
  expectWhole(finding, { requests: 500, "5xx": 0 });
  // some of each: otherwise the requests are all alike
  expect(finding.seen["4xx"]).toBeGreaterThan(25);
  expect(finding.seen["2xx"]).toBeGreaterThan(10);
});
