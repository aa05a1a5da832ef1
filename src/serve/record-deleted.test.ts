import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { databaseFile, recordDirectory } from "../model/state-layout.ts";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import { dropDatabase, execute } from "../../test/postgres/databases.ts";
import { freshDatabase } from "../../test/postgres/fresh-database.ts";
import { HostError } from "../model/errors.ts";
import { restoreStore } from "../record/restore.ts";
import { openStore } from "../record/open.ts";
import { openPostgresStore } from "../record/postgres/open.ts";

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
  await coordinator.client.agents.put("work", {
    name: "work",
    type: "procedural",
    command: "true",
  });
});
afterEach(() => coordinator.dispose());

const health = async () => {
  const { status, text } = await rawCall(coordinator.url, { path: "/health" });
  return { status, code: JSON.parse(text).code, text };
};
const submit = () => coordinator.client.submit({ agent_name: "work" });

test("a coordinator whose database was deleted is unhealthy, refuses writes, logs it and rescues its data", async () => {
  const acknowledgedIds: string[] = [];
  for (let index = 0; index < 80; index += 1) acknowledgedIds.push((await submit()).run_id);
  expect(await health()).toMatchObject({ status: 200 });
  rmSync(databaseFile(recordDirectory(coordinator.directory)));
  // The deletion shows at once, even if the last result is still cached.
  expect(await health()).toMatchObject({ status: 503, code: "DROVER-STA-012" });
  expect((await health()).text).not.toContain(coordinator.directory);
  // Writes acknowledged before the deletion was noticed are in the rescued record too.
  for (let isRefused = false; !isRefused;)
    await submit().then(
      ({ run_id }) => acknowledgedIds.push(run_id),
      (error) => {
        expect(error).toMatchObject({ code: "DROVER-STA-012" });
        isRefused = true;
      },
    );
  await expect(submit()).rejects.toMatchObject({ code: "DROVER-STA-012" });
  // Reads still work.
  expect((await coordinator.client.runs.get(acknowledgedIds[0]!)).run_id).toBe(acknowledgedIds[0]);
  const reported = coordinator.defects.filter(
    (defect) => defect instanceof HostError && defect.code === "DROVER-STA-012",
  );
  expect(reported).toHaveLength(1);
  const [name, ...more] = readdirSync(recordDirectory(coordinator.directory)).filter((item) =>
    item.endsWith(".backup"),
  );
  expect(more).toEqual([]);
  expect(reported[0]).toMatchObject({ next: expect.stringContaining(name!) });

  const directory = join(coordinator.directory, "restored");
  await restoreStore({
    directory,
    file: join(recordDirectory(coordinator.directory), name!),
    now: new Date(),
    keepTokens: true,
  });
  const restored = await openStore({ directory, now: () => new Date() });
  const restoredRuns = await Promise.all(acknowledgedIds.map((run_id) => restored.read.run(run_id)));
  await restored.close();
  expect(restoredRuns.filter((run) => run === null)).toEqual([]);
});

test("an idle coordinator reports that its database is gone, and recovers when it is back", async () => {
  const file = databaseFile(recordDirectory(coordinator.directory));
  renameSync(file, `${file}.aside`);
  await expect
    .poll(() => coordinator.defects.map((defect) => Reflect.get(Object(defect), "code")))
    .toContain("DROVER-STA-012");
  renameSync(`${file}.aside`, file);
  await expect.poll(async () => (await health()).status).toBe(200);
  expect((await submit()).status).toBe("pending");
});

test.skipIf(process.getuid?.() === 0)("a coordinator that cannot write to its directory is unhealthy", async () => {
  chmodSync(recordDirectory(coordinator.directory), 0o500);
  try {
    expect(await health()).toMatchObject({ status: 503, code: "DROVER-STA-001" });
  } finally {
    chmodSync(recordDirectory(coordinator.directory), 0o700);
  }
  expect(existsSync(coordinator.directory)).toBe(true);
});

const secret = randomBytes(32);

/** Executes statements in another database of the same server. */
async function administer(url: string, ...statements: ((name: string) => string)[]): Promise<void> {
  const admin = new URL(url);
  const name = admin.pathname.slice(1);
  admin.pathname = "/postgres";
  for (const statement of statements) await execute(admin.href, statement(name));
}
const recreate = async (url: string): Promise<void> => {
  await dropDatabase(url);
  await administer(url, (name) => `create database ${name} template template0`);
};
const replace = async (url: string, newSecret: Buffer): Promise<void> => {
  await recreate(url);
  await (await openPostgresStore({ url, secret: newSecret })).close();
};
const close = [
  (name: string) => `alter database ${name} allow_connections false`,
  (name: string) => `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
];
const cannotBeUsed = "DROVER-STA-006";
const unknownToken = "DROVER-API-009";

// `isHealthy` marks cases that /health cannot notice, because it reads neither runs nor tokens.
test.each<[what: string, damage: (url: string) => Promise<void>, code: string, isHealthy?: true]>([
  ["was dropped", dropDatabase, cannotBeUsed],
  ["was dropped and created again without tables", recreate, cannotBeUsed],
  ["was replaced by a new record", (url) => replace(url, secret), unknownToken, true],
  ["was replaced by a record with another secret", (url) => replace(url, randomBytes(32)), unknownToken, true],
  [
    "was renamed",
    (url) => administer(url, ...close, (name) => `alter database ${name} rename to ${name}_old`),
    cannotBeUsed,
  ],
  ["no longer accepts connections", (url) => administer(url, ...close), "DROVER-STA-008"],
  ["has lost its schema", (url) => execute(url, "drop schema drover cascade"), cannotBeUsed],
  ["has its schema under another name", (url) => execute(url, "alter schema drover rename to old"), cannotBeUsed],
  ["has lost its runs", (url) => execute(url, "drop table drover.runs cascade"), cannotBeUsed, true],
  ["has lost its tokens", (url) => execute(url, "drop table drover.tokens cascade"), cannotBeUsed, true],
  [
    "has its runs under another name",
    (url) => execute(url, "alter table drover.runs rename to old"),
    cannotBeUsed,
    true,
  ],
])("a coordinator acknowledges no run once its PostgreSQL database %s", async (_what, damage, code, isHealthy) => {
  const database = await freshDatabase();
  const fleet = await startTestCoordinator({ database: { url: database.url, secret } });
  try {
    await fleet.client.agents.put("work", { type: "procedural", command: "true" });
    await fleet.client.submit({ agent_name: "work" });
    await damage(database.url);
    for (let index = 0; index < 3; index += 1)
      await expect(fleet.client.submit({ agent_name: "work" })).rejects.toMatchObject({ code });
    if (isHealthy) return;
    await expect.poll(async () => (await rawCall(fleet.url, { path: "/health" })).status).toBe(503);
  } finally {
    await fleet.dispose();
    await database.drop();
  }
});
