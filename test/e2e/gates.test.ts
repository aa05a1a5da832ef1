// More promises of docs/torture.md, at a size that fits; those that wait do so together.
import { beforeAll, describe, expect, test } from "vitest";
import { auditRows } from "../../torture/audit-rows.ts";
import { bombing } from "../../torture/bombs.ts";
import { busyCores } from "../../torture/busy-cores.ts";
import { conversationsLost } from "../../torture/conversations.ts";
import { fileEscapes } from "../../torture/file-escapes.ts";
import type { Finding, Tools } from "../../torture/finding.ts";
import { idle } from "../../torture/idle.ts";
import { injection } from "../../torture/injection.ts";
import { ioFaults } from "../../torture/io-faults.ts";
import { databaseSilence, oneHangs } from "../../torture/outage.ts";
import { secrets } from "../../torture/secrets.ts";
import { soak } from "../../torture/soak.ts";
import { uploads } from "../../torture/uploads.ts";
import { accessRules } from "../../torture/access-rules.ts";
import { tortureTools } from "./torture-tools.ts";

let sqlite: Tools;
let postgres: Tools;
beforeAll(async () => {
  sqlite = await tortureTools("sqlite");
  postgres = { ...sqlite, engine: "postgres" };
});

function expectWhole({ broken, seen }: Finding, counted: Record<string, number>): void {
  expect(broken).toEqual([]);
  expect(seen).toMatchObject(counted);
}

describe.concurrent("together", () => {
  test("S1: file tools reach nothing outside their workspace", async () => {
    const finding = await fileEscapes({ vectors: 6, raceSeconds: 0.5 }, sqlite);
    expectWhole(finding, { escapes: 0 });
    expect(finding.seen["refused"]).toBeGreaterThan(50);
    expect(finding.seen["swaps"]).toBeGreaterThan(10);
  });

  test("R4: a conversation whose runner is killed continues on another, and nothing is done twice", async () => {
    const finding = await conversationsLost({ runs: 1, atOnce: 2, losses: 1 }, postgres);
    expectWhole(finding, { runs: 2, kills: 2, "carried out twice": 0, "answers asked for again": 0 });
  });

  test("R5: busy cores cost no lease", async () => {
    expectWhole(await busyCores({ runs: 4, seconds: 4 }, postgres), { runs: 4, expiries: 0 });
  });

  test("R7: a coordinator that stands still costs no run and no line", async () => {
    expectWhole(await oneHangs({ runs: 2, seconds: 8, times: { leaseMs: 20_000 } }, postgres), {
      "runs lost": 0,
      "runs with lines lost": 0,
    });
  });

  test("R7: who waits for work at one that stands still takes it from another", async () => {
    const size = { waiting: 1, times: { keepaliveMs: 900 }, withinMs: 60_000 };
    expectWhole(await idle(size, postgres), { "waited there": 1, "not back": 0 });
  });

  test("R7: nor does a database that does not answer", async () => {
    expectWhole(await databaseSilence({ runs: 2, seconds: 8, times: { leaseMs: 60_000 } }, postgres), {
      "runs lost": 0,
    });
  });

  test("R9: a full disk damages nothing, and nothing is wrongly told", async () => {
    expectWhole(await ioFaults({ runs: 2, seconds: 2, only: "disk full" }, sqlite), { "disk full, runs lost": 0 });
  });

  test("R9: nor does a database that is locked by somebody else", async () => {
    const finding = await ioFaults({ runs: 2, seconds: 7, only: "locked" }, postgres);
    expectWhole(finding, { "locked, runs lost": 0 });
    expect(finding.seen["locked, refused"]).toBeGreaterThan(0);
  });

  test("R9: nor does one that is read-only for a while", async () => {
    expectWhole(await ioFaults({ runs: 2, seconds: 2, only: "read-only" }, postgres), { "read-only, runs lost": 0 });
  });

  test("R8: audit rows of several writers of one record make one chain", async () => {
    expectWhole(await auditRows({ rows: 60 }, postgres), { rows: 60, "missing on the record": 0 });
  });

  test("R11: what runs take does not grow", async () => {
    expectWhole(await soak({ runs: 60, settleMs: 50 }, postgres), { runs: 60 });
  });

  test("S2: hostile values reach every executor as they are", async () => {
    expectWhole(await injection({ values: 3 }, postgres), { values: 3, misread: 0 });
  });

  test("S4: what ends a token at one coordinator ends it at another", async () => {
    expectWhole(await accessRules({ rounds: 8 }, postgres), { "tokens ended": 8, "answered otherwise": 0 });
  });

  test("S6: secrets that a run prints are found nowhere", async () => {
    expectWhole(await secrets({ canaries: 30, runs: 2 }, postgres), { runs: 2, found: 0 });
  });

  test("S11: hostile uploads leave nothing outside or in part, and files come back from any coordinator", async () => {
    expectWhole(await uploads({ rounds: 2, kills: 1 }, postgres), { "outside, partial or changed": 0 });
  });
});

test("K3: bombs are ended as over their limit", async () => {
  const size = { each: 1, outputMb: 20, files: 3000, idleMs: 200 };
  const seen = { "one file": 1, cpu: 1, disk: 1, files: 1, "runs over disk and files": 2 };
  expectWhole(await bombing(size, sqlite), seen);
});
