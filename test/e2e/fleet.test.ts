// The promises of docs/torture.md over PostgreSQL and several coordinators, at a size that fits.
import { beforeAll, expect, test } from "vitest";
import { coordinatorKilled } from "../../torture/coordinator-killed.ts";
import { databaseKilled } from "../../torture/database-killed.ts";
import type { Finding, Tools } from "../../torture/finding.ts";
import { fleetKilled } from "../../torture/fleet-killed.ts";
import { fleetReaders } from "../../torture/fleet-readers.ts";
import { hang } from "../../torture/hang.ts";
import { databaseOutage } from "../../torture/outage.ts";
import { race } from "../../torture/race.ts";
import { replay } from "../../torture/replay.ts";
import { staleWriter } from "../../torture/stale-writer.ts";
import { wake } from "../../torture/wake.ts";
import { tortureTools } from "./torture-tools.ts";

let tools: Tools;
beforeAll(async () => {
  tools = await tortureTools("postgres");
});

const timeout = 180_000;

function expectWhole({ broken, seen }: Finding, counted: Record<string, number>): void {
  expect(broken).toEqual([]);
  expect(seen).toMatchObject(counted);
}

test("a poll that waits at one coordinator is woken by a submit at another", { timeout }, async () => {
  expectWhole(await wake({ times: 20 }, tools), { polls: 20, "not woken": 0 });
});

test("R1: coordinators that are killed lose no run, and none is carried out twice", { timeout }, async () => {
  expectWhole(await coordinatorKilled({ kills: 4, runs: 80, runners: 2 }, tools), { runs: 80, executions: 80 });
});

test("R1 to R4: with runners killed too, each attempt is carried out once at most", { timeout }, async () => {
  expectWhole(await fleetKilled({ kills: 4, runs: 60 }, tools), { runs: 60, lost: 0, "carried out twice": 0 });
});

test("R1: a database that is killed has everything that was acknowledged", { timeout }, async () => {
  expectWhole(await databaseKilled({ kills: 2, runs: 60 }, tools), { runs: 60, lost: 0 });
});

test("R2: claimers that race at several coordinators are handed each run once", { timeout }, async () => {
  expectWhole(await race({ claimers: 20, runs: 200 }, tools), { runs: 200, "handed out twice": 0 });
});

test("R3: what a runner brings after its lease is refused, and that is on the record", { timeout }, async () => {
  expectWhole(await staleWriter({ stops: 4, lanes: 2 }, tools), { stops: 4, "stale writes accepted": 0 });
});

test("R7: a database that is away costs no run and no line", { timeout }, async () => {
  expectWhole(await databaseOutage({ runs: 4, seconds: 6 }, tools), { "runs lost": 0, "runs with lines lost": 0 });
});

test("R10: requests that arrive three times and shuffled are as if they came once", { timeout }, async () => {
  expectWhole(await replay({ runs: 30 }, tools), { runs: 30, "gaps or doubles": 0 });
});

test(
  "a coordinator that hangs in a transaction holds up no other for long, and writes nothing twice",
  { timeout },
  async () => {
    expectWhole(await hang({ stops: 1 }, tools), { lost: 0, "stored twice": 0 });
  },
);

test(
  "readers at other coordinators have every event once and in order, while these are killed",
  { timeout },
  async () => {
    const finding = await fleetReaders({ bursts: 20, readers: 4, kills: 2 }, tools);
    expectWhole(finding, { "readers that missed, doubled or misplaced something": 0 });
  },
);
