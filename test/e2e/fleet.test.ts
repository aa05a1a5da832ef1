// Small versions of the rows of docs/torture.md that run on PostgreSQL with several coordinators.
import { beforeAll, expect, test } from "vitest";
import { databaseKilled } from "../../torture/database-killed.ts";
import type { Finding, Tools } from "../../torture/finding.ts";
import { fleetKilled } from "../../torture/fleet-killed.ts";
import { fleetReaders } from "../../torture/fleet-readers.ts";
import { hang } from "../../torture/hang.ts";
import { databaseOutage } from "../../torture/outage.ts";
import { questions } from "../../torture/questions.ts";
import { race } from "../../torture/race.ts";
import { schedules } from "../../torture/schedules.ts";
import { wake } from "../../torture/wake.ts";
import { createTortureTools } from "./torture-tools.ts";

let tools: Tools;
beforeAll(async () => {
  tools = await createTortureTools("postgres");
});

function expectFinding({ broken, seen }: Finding, expectedCounts: Record<string, number>): void {
  expect(broken).toEqual([]);
  expect(seen).toMatchObject(expectedCounts);
}

test("a submit at one coordinator wakes a poll held by another", async () => {
  expectFinding(await wake({ times: 8 }, tools), { polls: 8, "not woken": 0 });
});

test("questions: loses none and accepts no second answer while coordinators and runners are killed", async () => {
  expectFinding(await questions({ runs: 3, questions: 4, kills: 3 }, tools), { kills: 3, runs: 3 });
});

test("schedules: every slot has one history line and at most one run while coordinators are killed", async () => {
  const finding = await schedules({ schedules: 8, seconds: 5 }, tools);
  expectFinding(finding, { schedules: 8 });
  expect(finding.seen["fired"]).toBeGreaterThan(0);
});

test("R1 to R4: executes each attempt at most once, although runners are killed too", async () => {
  expectFinding(await fleetKilled({ kills: 4, runs: 30 }, tools), { runs: 30, lost: 0, "carried out twice": 0 });
});

test("R1: a killed database keeps everything that was acknowledged", async () => {
  expectFinding(await databaseKilled({ kills: 2, runs: 30 }, tools), { runs: 30, lost: 0 });
});

test("R2: hands out each run once to claimers that race at several coordinators", async () => {
  expectFinding(await race({ claimers: 20, runs: 100 }, tools), { runs: 100, "handed out twice": 0 });
});

test("R7: loses no run and no line while the database is down", async () => {
  expectFinding(await databaseOutage({ runs: 4, seconds: 6 }, tools), { "runs lost": 0, "runs with lines lost": 0 });
});

test("a coordinator frozen in a transaction delays the others only briefly and writes nothing twice", async () => {
  expectFinding(await hang({ stops: 1 }, tools), { lost: 0, "stored twice": 0 });
});

test("readers receive every event once and in order although coordinators are killed", async () => {
  const finding = await fleetReaders({ bursts: 20, readers: 4, kills: 2 }, tools);
  expectFinding(finding, { "readers that missed, doubled or misplaced something": 0 });
});
