import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { recordDirectory, tokenFile } from "../model/state-layout.ts";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { type Key, keys } from "../../test/fixtures/dispatch/keys-of-a-backup.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";
import { startCoordinator } from "../coordinator.ts";
import { backupRecord, type RecordLocation } from "../record/backup.ts";
import { restoreRecord } from "../record/restore.ts";
import { createClient } from "../wire/client.ts";
import { replaceTokenFile } from "./token-file.ts";
import { newTokenText } from "./token-text.ts";

const cleanups: (() => unknown)[] = [];
let tempDirectory: string;
const secret = Buffer.alloc(32, 5);
beforeEach(() => {
  tempDirectory = mkdtempSync(join(tmpdir(), "drover-restored-"));
});
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).toReversed()) await cleanUp();
  rmSync(tempDirectory, { recursive: true, force: true });
});

const newDatabase = async (): Promise<FreshDatabase> => {
  const database = await freshDatabase();
  cleanups.push(() => database.drop());
  return database;
};

/** Returns the code that the token is refused with; null if it is accepted. */
const getRefusalCode = ({ url }: { url: string }, token: string): Promise<string | null> =>
  createClient({ url, token })
    .runs.list()
    .then(
      () => null,
      (error) => error.code,
    );

interface Engine {
  name: string;
  /** Creates an empty record and starts its coordinators. */
  createRecord(number: number): Promise<{ record: RecordLocation; start(): Promise<TestCoordinator> }>;
}

const engines: Engine[] = [
  {
    name: "sqlite",
    async createRecord(number) {
      const directory = join(tempDirectory, String(number));
      return {
        record: { directory: recordDirectory(directory) },
        start: () => startTestCoordinator({ stateDirectory: directory }),
      };
    },
  },
  {
    name: "postgres",
    async createRecord() {
      const { url } = await newDatabase();
      return {
        record: { url, secret },
        start: () => startTestCoordinator({ database: { url, secret } }),
      };
    },
  },
];

describe.each(engines)("a record of $name that is restored", ({ createRecord }) => {
  test("accepts no token of its backup, and has a new admin token", async () => {
    const original = await createRecord(1);
    const first = await original.start();
    cleanups.push(() => first.dispose());
    const { client } = first;
    const texts = await Promise.all(
      (["admin", "user", "viewer", "runner"] as const).map(async (role) => ({
        ...(await client.tokens.create({ role, subject: `a ${role}` })),
      })),
    );
    const enrolment = await client.tokens.create({ role: "runner", subject: "box", enrolment: true });
    const rotated = await client.tokens.create({ role: "user", subject: "rotated" });
    await client.tokens.rotate(rotated.token_id, { overlap_seconds: 3600 });
    const file = join(tempDirectory, "backup");
    await backupRecord(original.record, file, new Date());
    // Revoked after the backup, so a restore must not revive them.
    await client.tokens.revoke(texts[1]!.token_id);
    await client.tokens.revoke("self");
    const leaked = first.adminToken;
    await first.stop();

    const target = await createRecord(2);
    const { revoked_tokens } = await restoreRecord(target.record, file, {
      now: new Date(),
      beforePublish() {
        if ("directory" in target.record) replaceTokenFile(target.record.directory, newTokenText("drv_"));
      },
    });
    expect(revoked_tokens).toBe(8);
    const second = await target.start();
    cleanups.push(() => second.dispose());
    for (const token of [leaked, rotated.token, ...texts.map((text) => text.token)])
      expect(await getRefusalCode(second, token)).toBe("DROVER-API-010");
    await expect(createClient({ url: second.url, token: enrolment.token }).runs.list()).rejects.toThrow();
    expect(second.adminToken).not.toBe(leaked);
    expect(await getRefusalCode(second, second.adminToken)).toBeNull();
    if ("directory" in target.record)
      expect(readFileSync(tokenFile(target.record.directory, "token"), "utf8").trim()).toBe(second.adminToken);
    const listed = await second.client.tokens.list();
    expect(listed.items.filter(({ revoked_at }) => revoked_at === null)).toHaveLength(1);
  });

  test("keeps the tokens of its backup on request", async () => {
    const original = await createRecord(1);
    const first = await original.start();
    cleanups.push(() => first.dispose());
    const { token, token_id } = await first.client.tokens.create({ role: "user", subject: "ann" });
    const file = join(tempDirectory, "backup");
    await backupRecord(original.record, file, new Date());
    await first.client.tokens.revoke(token_id);
    await first.stop();
    const target = await createRecord(2);
    const { revoked_tokens } = await restoreRecord(target.record, file, { now: new Date(), keepTokens: true });
    expect(revoked_tokens).toBeNull();
    const second = await target.start();
    cleanups.push(() => second.dispose());
    expect(await getRefusalCode(second, token)).toBeNull();
  });
});

describe.each(engines)("a restored record of $name is not opened by", ({ createRecord }) => {
  let restored: TestCoordinator;
  const createdKeys = new Map<string, Key>();
  const stops: (() => unknown)[] = [];
  beforeAll(async () => {
    tempDirectory = mkdtempSync(join(tmpdir(), "drover-restored-"));
    const [original, target] = [await createRecord(1), await createRecord(2)];
    // The databases are kept until all tokens were tried.
    stops.push(...cleanups.splice(0));
    const first = await original.start();
    stops.push(() => first.dispose());
    for (const [what, make] of keys) createdKeys.set(what, await make(first));
    const file = join(tempDirectory, "backup");
    await backupRecord(original.record, file, new Date());
    for (const { end } of createdKeys.values()) await end?.();
    await first.stop();
    await restoreRecord(target.record, file, { now: new Date() });
    restored = await target.start();
    stops.push(() => restored.dispose());
    const usedDirectory = tempDirectory;
    stops.push(() => rmSync(usedDirectory, { recursive: true, force: true }));
  });
  afterAll(async () => {
    for (const stop of stops.toReversed()) await stop();
  });

  test.each(keys.map(([what]) => what))("%s", async (what) => {
    const refused = await createdKeys.get(what)!.tryAt(restored);
    expect(refused ?? "accepted").toMatch(/^DROVER-(?:API-0(?:09|10|34)|WEB-001)$/);
  });
});

test("a restore does not revive a fleet admin token that was revoked after the backup", async () => {
  const database = { url: (await newDatabase()).url, secret };
  const options = { stateDirectory: tempDirectory, port: 0, database };
  const file = join(tempDirectory, "backup");
  const texts: string[] = [];
  for (const round of [1, 2, 3]) {
    const coordinator = await startCoordinator(options);
    if (round === 1) await backupRecord(database, file, new Date());
    texts.push(coordinator.adminToken);
    await createClient({ url: coordinator.url, token: coordinator.adminToken }).tokens.revoke("self");
    await coordinator.stop();
  }
  for (const round of [1, 2]) {
    const other = { url: (await newDatabase()).url, secret };
    await restoreRecord(other, file, { now: new Date(Date.now() + round) });
    const coordinator = await startCoordinator({ ...options, database: other });
    expect(texts).not.toContain(coordinator.adminToken);
    texts.push(coordinator.adminToken);
    for (const old of texts.slice(0, -1)) expect(await getRefusalCode(coordinator, old)).not.toBeNull();
    await coordinator.stop();
  }
});
