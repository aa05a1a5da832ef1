// Commands whose DATABASE_URL points to the record of a fleet.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { auditKeyFile, announcementFile, recordDirectory, tokenFile } from "../../src/model/state-layout.ts";
import type { Run } from "../../src/model/run.ts";
import { type FreshDatabase, freshDatabase } from "../postgres/fresh-database.ts";
import { drover, createDirectory, type CommandResult } from "./drover.ts";
import { waitForExit, startCommand } from "./coordinator-process.ts";

let cwd: string;
let database: FreshDatabase;
beforeEach(async () => {
  cwd = createDirectory();
  database = await freshDatabase();
});
afterEach(() => database.drop());

const secret = "5e".repeat(32);
const state = (name = "state"): string => join(cwd, name);
const getFleetEnv = (): Record<string, string> => ({ DATABASE_URL: database.url, DROVER_SECRET: secret });
const run = (args: string[], env: Record<string, string> = {}): Promise<CommandResult> =>
  drover(args, { cwd, env: { DROVER_STATE_DIR: state(), ...env } });
const migratedEnv = (): Record<string, string> => ({
  DATABASE_URL: database.url,
  DROVER_SECRET_FILE: auditKeyFile(recordDirectory(state())),
});
const listRuns = ({ stdout }: CommandResult): Run[] =>
  stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

async function query(text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

test("refuses to run or resume for a fleet without a coordinator", async () => {
  for (const args of [
    ["run", "echo", "--message", "hello"],
    ["sessions", "resume", "019a3f0e", "--prompt", "on"],
  ]) {
    const refused = await run(args, getFleetEnv());
    expect(refused).toMatchObject({ code: 125, stdout: "" });
    expect(refused.stderr).toContain("[DROVER-API-023]");
    expect(refused.stderr).toContain("DROVER_API_URL");
  }
  const result = JSON.parse((await run(["run", "echo", "--message", "hello", "--json"], getFleetEnv())).stdout);
  expect(result.error).toMatchObject({ code: "DROVER-API-023", field: "DATABASE_URL" });
  expect(await query("select nspname from pg_namespace where nspname = 'drover'")).toEqual([]);
  expect(existsSync(state())).toBe(false);
});

test("reads history from the database, while exec keeps its own record and says where", async () => {
  for (const word of ["one", "two"]) expect((await run(["exec", `echo ${word}`])).code).toBe(0);
  const runsBefore = await run(["runs", "list", "--json"]);
  expect((await run(["migrate", "--to", database.url])).code).toBe(0);
  const [latest] = listRuns(runsBefore);

  const failed = await run(["exec", "echo three; exit 3"], migratedEnv());
  expect(failed).toMatchObject({ code: 3, stdout: "three\n" });
  const hint = /^ {2}(env -u DATABASE_URL drover runs show (\S+))$/m.exec(failed.stderr);
  expect(failed.stderr).toMatch(/env -u DATABASE_URL drover runs show/);
  const localState = hint?.[2] ?? "";
  expect(listRuns(await run(["runs", "list", "--json"])).map(({ run_id }) => run_id)).toContain(localState);
  expect((await run(["runs", "show", localState])).code).toBe(0);

  expect(await run(["runs", "list", "--json"], migratedEnv())).toMatchObject({ code: 0, stdout: runsBefore.stdout });
  for (const args of [
    ["runs", "show", latest?.run_id ?? "", "--json"],
    ["runs", "events", latest?.run_id ?? ""],
    ["runs", "files", latest?.run_id ?? ""],
    ["sessions", "list", "--json"],
  ])
    expect({ args, ...(await run(args, migratedEnv())) }).toEqual({ args, ...(await run(args)) });
  expect((await run(["runs", "show", localState], migratedEnv())).code).toBe(2);
});

test("refuses to change the database's record without a coordinator, and says what to do", async () => {
  expect((await run(["run", "echo", "--message", "hello"])).code).toBe(0);
  expect((await run(["migrate", "--to", database.url])).code).toBe(0);
  const [moving] = listRuns(await run(["runs", "list", "--json"], migratedEnv()));
  const removing = await run(["sessions", "delete", moving?.session_id ?? "", "--json"], migratedEnv());
  expect(JSON.parse(removing.stdout).error).toMatchObject({
    code: "DROVER-API-023",
    next: expect.stringContaining("DROVER_API_URL"),
  });
});

test("reports a database without a record, and leaves it empty", async () => {
  const listed = await run(["runs", "list"], getFleetEnv());
  expect(listed).toMatchObject({ code: 125, stderr: expect.stringContaining("There is no record in ") });
  expect(await query("select nspname from pg_namespace where nspname = 'drover'")).toEqual([]);
});

async function coordinator(env: Record<string, string>): Promise<string> {
  const output = await startCommand(["coordinator", "--port", "0"], {
    cwd,
    env: { DROVER_STATE_DIR: state(), ...env },
    ready: /^Serving \S+/m,
  });
  return /^Serving (\S+)/m.exec(output)?.[1] ?? "";
}

const announcement = (): { url: string; pid: number } =>
  JSON.parse(readFileSync(announcementFile(recordDirectory(state())), "utf8"));

async function waitUntilEnded(pid: number): Promise<void> {
  process.kill(pid, "SIGTERM");
  expect(await waitForExit(pid)).toBe(0);
}

test("refuses a second coordinator of a fleet in the same state directory, and keeps the first one's address", async () => {
  const url = await coordinator(getFleetEnv());
  const { pid } = announcement();
  const second = await run(["coordinator", "--port", "0"], getFleetEnv());
  expect(second).toMatchObject({ code: 125, stderr: expect.stringContaining(`at ${url} (process ${pid})`) });
  expect(announcement()).toMatchObject({ url, pid });
  await waitUntilEnded(pid);
  expect(existsSync(announcementFile(recordDirectory(state())))).toBe(false);
});

test("keeps a fleet's token separate from the token of the local record", async () => {
  await coordinator({});
  const localToken = readFileSync(tokenFile(recordDirectory(state()), "token"), "utf8");
  await waitUntilEnded(announcement().pid);

  await coordinator(getFleetEnv());
  expect(readFileSync(tokenFile(recordDirectory(state()), "token"), "utf8")).toBe(localToken);
  const fleetToken = readFileSync(tokenFile(recordDirectory(state()), "fleet-token"), "utf8");
  expect(fleetToken).not.toBe(localToken);
  expect((await run(["tokens", "list"])).code).toBe(0);
  const rotated = await run(["tokens", "rotate", "self"]);
  expect(rotated).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`Stored the new token in ${tokenFile(recordDirectory(state()), "fleet-token")}`),
  });
  expect(readFileSync(tokenFile(recordDirectory(state()), "fleet-token"), "utf8")).toBe(rotated.stdout);
  expect(readFileSync(tokenFile(recordDirectory(state()), "token"), "utf8")).toBe(localToken);
  await waitUntilEnded(announcement().pid);

  const url = await coordinator({});
  const requestStatus = (token: string): Promise<number> =>
    fetch(`${url}/tokens`, { headers: { authorization: `Bearer ${token.trim()}` } }).then(({ status }) => status);
  expect([
    await requestStatus(localToken),
    await requestStatus(fleetToken),
    await requestStatus(rotated.stdout),
  ]).toEqual([200, 401, 401]);
});

test("a coordinator stops at once after a second signal", async () => {
  await coordinator(getFleetEnv());
  const { pid } = announcement();
  const holder = new pg.Client({ connectionString: database.url });
  await holder.connect();
  try {
    await holder.query("begin; lock table drover.runs in access exclusive mode");
    const stuckCoordinator = `select 1 from pg_stat_activity
      where application_name = 'drover' and wait_event_type = 'Lock' and datname = current_database()`;
    await expect.poll(async () => (await query(stuckCoordinator)).length).toBeGreaterThan(0);
    const code = waitForExit(pid);
    process.kill(pid, "SIGTERM");
    process.kill(pid, "SIGINT");
    expect(await code).toBe(130);
  } finally {
    await holder.end();
  }
});
