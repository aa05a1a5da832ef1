import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { auditKeyFile, recordDirectory } from "../../src/model/state-layout.ts";
import { type FreshDatabase, freshDatabase } from "../postgres/fresh-database.ts";
import { drover, folder, type Ran } from "./drover.ts";
import { serve } from "./serving.ts";

let cwd: string;
let databases: FreshDatabase[];
beforeEach(() => {
  cwd = folder();
  databases = [];
});
afterEach(async () => {
  for (const database of databases) await database.drop();
});

async function newDatabase(): Promise<string> {
  const database = await freshDatabase();
  databases.push(database);
  return database.url;
}

const state = (name = "state"): string => join(cwd, name);
const here = (words: string[], env: Record<string, string> = {}): Promise<Ran> =>
  drover(words, { cwd, env: { DROVER_STATE_DIR: state(), ...env } });
const there = (url: string): Record<string, string> => ({
  DATABASE_URL: url,
  DROVER_SECRET_FILE: auditKeyFile(recordDirectory(state())),
});
const told = (said: string): string => /^head (\d+:[0-9a-f]{64})$/m.exec(said)?.[1] ?? "";

async function execSome(count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) expect((await here(["exec", `echo ${at}`])).code).toBe(0);
}

test("a record is moved to PostgreSQL, verified, exported, backed up, and restored in both places", async () => {
  await execSome(3);
  const url = await newDatabase();
  const migrated = await here(["migrate", "--to", url]);
  expect(migrated.code).toBe(0);
  expect(migrated.stdout).toContain("3 runs, ");
  expect(migrated.stdout).toContain("6 audit rows, intact");
  expect(migrated.stdout).toContain(`DROVER_SECRET_FILE=${auditKeyFile(recordDirectory(state()))}`);
  expect(migrated.stdout).not.toContain(new URL(url).password);
  const head = told(migrated.stdout);
  expect(head).toBe(told((await here(["audit", "verify"])).stdout));

  const env = there(url);
  expect(await here(["audit", "verify", "--head", head], env)).toMatchObject({
    code: 0,
    stdout: `The record is intact: 6 rows in 6 batches.\nhead ${head}\n`,
  });
  expect(await here(["audit", "verify", "--head", `7:${"0".repeat(64)}`], env)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining("Do not change this database"),
  });
  const [fromThere, fromHere] = [await here(["audit", "export"], env), await here(["audit", "export"])];
  expect(fromThere.stdout.trim().split("\n")).toHaveLength(3);
  expect(fromThere.stdout).toBe(fromHere.stdout);

  const file = join(cwd, "moved.backup");
  expect(await here(["backup", file], env)).toMatchObject({ code: 0, stderr: expect.stringContaining("Wrote ") });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const other = await newDatabase();
  for (const into of [there(other), { DROVER_STATE_DIR: state("back") }]) {
    const restored = await here(["restore", file], into);
    expect(restored).toMatchObject({ code: 0, stdout: expect.stringContaining("6 audit rows, intact") });
    expect(told(restored.stdout)).toBe(head);
    expect((await here(["restore", file], into)).code).toBe(2);
    expect((await here(["audit", "verify", "--head", head], into)).code).toBe(0);
  }
  const listed = await here(["runs", "list", "--json"], { DROVER_STATE_DIR: state("back") });
  expect(listed.stdout).toBe((await here(["runs", "list", "--json"])).stdout);
});

test("what stands in the way of a migration is said, with what to do, and nothing is done", async () => {
  const url = await newDatabase();
  expect(await here(["migrate", "--to", url])).toMatchObject({
    code: 125,
    stderr: expect.stringContaining("There is no database at"),
  });
  await execSome(1);
  for (const words of [[], ["--to", "mysql://x/y"], ["--to", "nonsense"]])
    expect(await here(["migrate", ...words])).toMatchObject({ code: 2, stderr: expect.stringContaining("--to") });

  const key = readFileSync(auditKeyFile(recordDirectory(state())), "utf8").trim();
  const wrong = await here(["migrate", "--to", url], { DROVER_SECRET: "0".repeat(64) });
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining("is not the key that seals the record") });
  expect(wrong.stderr).toContain(`DROVER_SECRET_FILE=${auditKeyFile(recordDirectory(state()))}`);

  await serve(cwd);
  const serving = await here(["migrate", "--to", url, "--json"]);
  expect(serving.code).toBe(2);
  expect(JSON.parse(serving.stdout).error).toMatchObject({
    message: expect.stringContaining("A coordinator is serving"),
    next: expect.stringContaining("Stop it"),
  });

  expect((await here(["audit", "verify"], { DATABASE_URL: url, DROVER_SECRET: key })).stderr).toContain(
    "There is no record in",
  );
});

test("with --json a migration tells its counts and head; a second one is refused", async () => {
  await execSome(1);
  const url = await newDatabase();
  const key = readFileSync(auditKeyFile(recordDirectory(state())), "utf8").trim();
  const { code, stdout } = await here(["migrate", "--to", url, "--json"], { DROVER_SECRET: key.toUpperCase() });
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    state_directory: state(),
    database: expect.not.stringContaining("@"),
    rows: { runs: 1, audit_rows: 2, tokens: 0 },
    contents: 0,
    missing: 0,
    audit: { ok: true, rows: 2 },
  });
  expect(await here(["migrate", "--to", url])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/postgres:\/\/127\.0\.0\.1\S* already contains a record/),
  });
});

test("the password need not be an argument, where others of the machine could read it", async () => {
  await execSome(1);
  const given = [await newDatabase(), await newDatabase()].map((url) => new URL(url));
  const passwords = given.map(({ password }) => password);
  for (const url of given) url.password = "";
  const pass = join(cwd, "pass");
  const { hostname, port, username } = given[1]!;
  writeFileSync(pass, `${hostname}:${port}:*:${username}:${passwords[1]}\n`, { mode: 0o600 });
  for (const [at, env] of [{ PGPASSWORD: passwords[0] ?? "" }, { PGPASSFILE: pass }].entries()) {
    const to = given[at]!.href;
    const without = await here(["migrate", "--to", to]);
    expect(without).toMatchObject({ code: 125, stderr: expect.stringContaining("[DROVER-STA-006]") });
    expect(without.stderr).toContain("PGPASSWORD");
    const migrated = await here(["migrate", "--to", to], env);
    expect(migrated, migrated.stderr).toMatchObject({ code: 0 });
    const found = await here(["runs", "list", "--json"], { ...there(to), ...env });
    expect(found.stdout).toBe((await here(["runs", "list", "--json"])).stdout);
  }
});
