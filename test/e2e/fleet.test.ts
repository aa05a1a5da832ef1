// The promises of docs/torture.md over PostgreSQL and several coordinators, at a size that fits.
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
import { tortureTools } from "./torture-tools.ts";

let tools: Tools;
beforeAll(async () => {
  tools = await tortureTools("postgres");
});

function expectWhole({ broken, seen }: Finding, counted: Record<string, number>): void {
  expect(broken).toEqual([]);
  expect(seen).toMatchObject(counted);
}

test("a poll that waits at one coordinator is woken by a submit at another", async () => {
  expectWhole(await wake({ times: 8 }, tools), { polls: 8, "not woken": 0 });
});

test("questions: none is lost or answered twice, whichever coordinator or runner is killed", async () => {
  expectWhole(await questions({ runs: 3, questions: 4, kills: 3 }, tools), { kills: 3, runs: 3 });
});

test("schedules: every slot has one line and one run at most, whichever coordinator is killed", async () => {
  const finding = await schedules({ schedules: 8, seconds: 5 }, tools);
  expectWhole(finding, { schedules: 8 });
  expect(finding.seen["fired"]).toBeGreaterThan(0);
});

test("R1 to R4: with runners killed too, each attempt is carried out once at most", async () => {
  expectWhole(await fleetKilled({ kills: 4, runs: 30 }, tools), { runs: 30, lost: 0, "carried out twice": 0 });
});

test("R1: a database that is killed has everything that was acknowledged", async () => {
  expectWhole(await databaseKilled({ kills: 2, runs: 30 }, tools), { runs: 30, lost: 0 });
});

test("R2: claimers that race at several coordinators are handed each run once", async () => {
  expectWhole(await race({ claimers: 20, runs: 100 }, tools), { runs: 100, "handed out twice": 0 });
});

test("R7: a database that is away costs no run and no line", async () => {
  expectWhole(await databaseOutage({ runs: 4, seconds: 6 }, tools), { "runs lost": 0, "runs with lines lost": 0 });
});

test("a coordinator that hangs in a transaction holds up no other for long, and writes nothing twice", async () => {
  expectWhole(await hang({ stops: 1 }, tools), { lost: 0, "stored twice": 0 });
});

test("readers at other coordinators have every event once and in order, while these are killed", async () => {
  const finding = await fleetReaders({ bursts: 20, readers: 4, kills: 2 }, tools);
  expectWhole(finding, { "readers that missed, doubled or misplaced something": 0 });
});
