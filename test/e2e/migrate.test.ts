import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { auditKeyFile, recordDirectory } from "../../src/model/state-layout.ts";
import { type FreshDatabase, freshDatabase } from "../postgres/fresh-database.ts";
import { drover, createDirectory, type CommandResult } from "./drover.ts";
import { startCoordinator } from "./coordinator-process.ts";

let cwd: string;
let databases: FreshDatabase[];
beforeEach(() => {
  cwd = createDirectory();
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
const run = (args: string[], env: Record<string, string> = {}): Promise<CommandResult> =>
  drover(args, { cwd, env: { DROVER_STATE_DIR: state(), ...env } });
const databaseEnv = (url: string): Record<string, string> => ({
  DATABASE_URL: url,
  DROVER_SECRET_FILE: auditKeyFile(recordDirectory(state())),
});
const parseHead = (output: string): string => /^head (\d+:[0-9a-f]{64})$/m.exec(output)?.[1] ?? "";

async function execSome(count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) expect((await run(["exec", `echo ${index}`])).code).toBe(0);
}

test("moves a record to PostgreSQL, verifies, exports and backs it up, and restores it on both engines", async () => {
  await execSome(3);
  const url = await newDatabase();
  const migrated = await run(["migrate", "--to", url]);
  expect(migrated.code).toBe(0);
  expect(migrated.stdout).toContain("3 runs, ");
  expect(migrated.stdout).toContain("6 audit rows, intact");
  expect(migrated.stdout).toContain(`DROVER_SECRET_FILE=${auditKeyFile(recordDirectory(state()))}`);
  expect(migrated.stdout).not.toContain(new URL(url).password);
  const head = parseHead(migrated.stdout);
  expect(head).toBe(parseHead((await run(["audit", "verify"])).stdout));

  const env = databaseEnv(url);
  expect(await run(["audit", "verify", "--head", head], env)).toMatchObject({
    code: 0,
    stdout: `The record is intact: 6 rows in 6 batches.\nhead ${head}\n`,
  });
  expect(await run(["audit", "verify", "--head", `7:${"0".repeat(64)}`], env)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining("Do not change this database"),
  });
  const [fromThere, fromHere] = [await run(["audit", "export"], env), await run(["audit", "export"])];
  expect(fromThere.stdout.trim().split("\n")).toHaveLength(3);
  expect(fromThere.stdout).toBe(fromHere.stdout);

  const file = join(cwd, "moved.backup");
  expect(await run(["backup", file], env)).toMatchObject({ code: 0, stderr: expect.stringContaining("Wrote ") });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const otherDatabase = await newDatabase();
  for (const into of [databaseEnv(otherDatabase), { DROVER_STATE_DIR: state("back") }]) {
    const restored = await run(["restore", file], into);
    expect(restored).toMatchObject({ code: 0, stdout: expect.stringContaining("6 audit rows, intact") });
    expect(parseHead(restored.stdout)).toBe(head);
    expect((await run(["restore", file], into)).code).toBe(2);
    expect((await run(["audit", "verify", "--head", head], into)).code).toBe(0);
  }
  const listed = await run(["runs", "list", "--json"], { DROVER_STATE_DIR: state("back") });
  expect(listed.stdout).toBe((await run(["runs", "list", "--json"])).stdout);
});

test("refuses to migrate while something is in the way, says what to do, and changes nothing", async () => {
  const url = await newDatabase();
  expect(await run(["migrate", "--to", url])).toMatchObject({
    code: 125,
    stderr: expect.stringContaining("There is no database at"),
  });
  await execSome(1);
  for (const args of [[], ["--to", "mysql://x/y"], ["--to", "nonsense"]])
    expect(await run(["migrate", ...args])).toMatchObject({ code: 2, stderr: expect.stringContaining("--to") });

  const key = readFileSync(auditKeyFile(recordDirectory(state())), "utf8").trim();
  const withWrongSecret = await run(["migrate", "--to", url], { DROVER_SECRET: "0".repeat(64) });
  expect(withWrongSecret).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("is not the key that seals the record"),
  });
  expect(withWrongSecret.stderr).toContain(`DROVER_SECRET_FILE=${auditKeyFile(recordDirectory(state()))}`);

  await startCoordinator(cwd);
  const coordinator = await run(["migrate", "--to", url, "--json"]);
  expect(coordinator.code).toBe(2);
  expect(JSON.parse(coordinator.stdout).error).toMatchObject({
    message: expect.stringContaining("A coordinator is serving"),
    next: expect.stringContaining("Stop it"),
  });

  expect((await run(["audit", "verify"], { DATABASE_URL: url, DROVER_SECRET: key })).stderr).toContain(
    "There is no record in",
  );
});

test("prints the counts and the head with --json, and refuses a second migration", async () => {
  await execSome(1);
  const url = await newDatabase();
  const key = readFileSync(auditKeyFile(recordDirectory(state())), "utf8").trim();
  const { code, stdout } = await run(["migrate", "--to", url, "--json"], { DROVER_SECRET: key.toUpperCase() });
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    state_directory: state(),
    database: expect.not.stringContaining("@"),
    rows: { runs: 1, audit_rows: 2, tokens: 0 },
    contents: 0,
    missing: 0,
    audit: { ok: true, rows: 2 },
  });
  expect(await run(["migrate", "--to", url])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/postgres:\/\/127\.0\.0\.1\S* already contains a record/),
  });
});

test("reads the password from elsewhere, so that other users of the machine do not see it among the arguments", async () => {
  await execSome(1);
  const urls = [await newDatabase(), await newDatabase()].map((url) => new URL(url));
  const passwords = urls.map(({ password }) => password);
  for (const url of urls) url.password = "";
  const pass = join(cwd, "pass");
  const { hostname, port, username } = urls[1]!;
  writeFileSync(pass, `${hostname}:${port}:*:${username}:${passwords[1]}\n`, { mode: 0o600 });
  for (const [index, env] of [{ PGPASSWORD: passwords[0] ?? "" }, { PGPASSFILE: pass }].entries()) {
    const target = urls[index]!.href;
    const withoutPassword = await run(["migrate", "--to", target]);
    expect(withoutPassword).toMatchObject({ code: 125, stderr: expect.stringContaining("[DROVER-STA-006]") });
    expect(withoutPassword.stderr).toContain("PGPASSWORD");
    const migrated = await run(["migrate", "--to", target], env);
    expect(migrated, migrated.stderr).toMatchObject({ code: 0 });
    const runsList = await run(["runs", "list", "--json"], { ...databaseEnv(target), ...env });
    expect(runsList.stdout).toBe((await run(["runs", "list", "--json"])).stdout);
  }
});
