// What commands do where DATABASE_URL says that the record is a fleet's.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { auditKeyFile, announcementFile, recordDirectory, tokenFile } from "../../src/model/state-layout.ts";
import type { Run } from "../../src/model/run.ts";
import { type FreshDatabase, freshDatabase } from "../postgres/fresh-database.ts";
import { drover, folder, type Ran } from "./drover.ts";
import { exitOf, keepRunning } from "./serving.ts";

let cwd: string;
let database: FreshDatabase;
beforeEach(async () => {
  cwd = folder();
  database = await freshDatabase();
});
afterEach(() => database.drop());

const secret = "5e".repeat(32);
const state = (name = "state"): string => join(cwd, name);
const fleet = (): Record<string, string> => ({ DATABASE_URL: database.url, DROVER_SECRET: secret });
const here = (words: string[], env: Record<string, string> = {}): Promise<Ran> =>
  drover(words, { cwd, env: { DROVER_STATE_DIR: state(), ...env } });
const moved = (): Record<string, string> => ({
  DATABASE_URL: database.url,
  DROVER_SECRET_FILE: auditKeyFile(recordDirectory(state())),
});
const runsOf = ({ stdout }: Ran): Run[] =>
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
  for (const words of [
    ["run", "echo", "--message", "hello"],
    ["sessions", "resume", "019a3f0e", "--prompt", "on"],
  ]) {
    const refused = await here(words, fleet());
    expect(refused).toMatchObject({ code: 125, stdout: "" });
    expect(refused.stderr).toContain("[DROVER-API-023]");
    expect(refused.stderr).toContain("DROVER_API_URL");
  }
  const told = JSON.parse((await here(["run", "echo", "--message", "hello", "--json"], fleet())).stdout);
  expect(told.error).toMatchObject({ code: "DROVER-API-023", field: "DATABASE_URL" });
  expect(await query("select nspname from pg_namespace where nspname = 'drover'")).toEqual([]);
  expect(existsSync(state())).toBe(false);
});

test("reads history from the database, while exec keeps its own record and says where", async () => {
  for (const word of ["one", "two"]) expect((await here(["exec", `echo ${word}`])).code).toBe(0);
  const before = await here(["runs", "list", "--json"]);
  expect((await here(["migrate", "--to", database.url])).code).toBe(0);
  const [latest] = runsOf(before);

  const failed = await here(["exec", "echo three; exit 3"], moved());
  expect(failed).toMatchObject({ code: 3, stdout: "three\n" });
  const hint = /^ {2}(env -u DATABASE_URL drover runs show (\S+))$/m.exec(failed.stderr);
  expect(failed.stderr).toMatch(/env -u DATABASE_URL drover runs show/);
  const local = hint?.[2] ?? "";
  expect(runsOf(await here(["runs", "list", "--json"])).map(({ run_id }) => run_id)).toContain(local);
  expect((await here(["runs", "show", local])).code).toBe(0);

  expect(await here(["runs", "list", "--json"], moved())).toMatchObject({ code: 0, stdout: before.stdout });
  for (const words of [
    ["runs", "show", latest?.run_id ?? "", "--json"],
    ["runs", "events", latest?.run_id ?? ""],
    ["runs", "files", latest?.run_id ?? ""],
    ["sessions", "list", "--json"],
  ])
    expect({ words, ...(await here(words, moved())) }).toEqual({ words, ...(await here(words)) });
  expect((await here(["runs", "show", local], moved())).code).toBe(2);
});

test("refuses to change the database's record without a coordinator, and says what to do", async () => {
  expect((await here(["run", "echo", "--message", "hello"])).code).toBe(0);
  expect((await here(["migrate", "--to", database.url])).code).toBe(0);
  const [run] = runsOf(await here(["runs", "list", "--json"], moved()));
  const removing = await here(["sessions", "delete", run?.session_id ?? "", "--json"], moved());
  expect(JSON.parse(removing.stdout).error).toMatchObject({
    code: "DROVER-API-023",
    next: expect.stringContaining("DROVER_API_URL"),
  });
});

test("reports a database without a record, and leaves it empty", async () => {
  const listed = await here(["runs", "list"], fleet());
  expect(listed).toMatchObject({ code: 125, stderr: expect.stringContaining("There is no record in ") });
  expect(await query("select nspname from pg_namespace where nspname = 'drover'")).toEqual([]);
});

async function coordinator(env: Record<string, string>): Promise<string> {
  const said = await keepRunning(["coordinator", "--port", "0"], {
    cwd,
    env: { DROVER_STATE_DIR: state(), ...env },
    ready: /^Serving \S+/m,
  });
  return /^Serving (\S+)/m.exec(said)?.[1] ?? "";
}

const announcement = (): { url: string; pid: number } =>
  JSON.parse(readFileSync(announcementFile(recordDirectory(state())), "utf8"));

async function ended(pid: number): Promise<void> {
  process.kill(pid, "SIGTERM");
  expect(await exitOf(pid)).toBe(0);
}

test("refuses a second coordinator of a fleet in the same state directory, and keeps the first one's address", async () => {
  const url = await coordinator(fleet());
  const { pid } = announcement();
  const second = await here(["coordinator", "--port", "0"], fleet());
  expect(second).toMatchObject({ code: 125, stderr: expect.stringContaining(`at ${url} (process ${pid})`) });
  expect(announcement()).toMatchObject({ url, pid });
  await ended(pid);
  expect(existsSync(announcementFile(recordDirectory(state())))).toBe(false);
});

test("keeps a fleet's token separate from the token of the local record", async () => {
  await coordinator({});
  const own = readFileSync(tokenFile(recordDirectory(state()), "token"), "utf8");
  await ended(announcement().pid);

  await coordinator(fleet());
  expect(readFileSync(tokenFile(recordDirectory(state()), "token"), "utf8")).toBe(own);
  const theirs = readFileSync(tokenFile(recordDirectory(state()), "fleet-token"), "utf8");
  expect(theirs).not.toBe(own);
  expect((await here(["tokens", "list"])).code).toBe(0);
  const rotated = await here(["tokens", "rotate", "self"]);
  expect(rotated).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`Stored the new token in ${tokenFile(recordDirectory(state()), "fleet-token")}`),
  });
  expect(readFileSync(tokenFile(recordDirectory(state()), "fleet-token"), "utf8")).toBe(rotated.stdout);
  expect(readFileSync(tokenFile(recordDirectory(state()), "token"), "utf8")).toBe(own);
  await ended(announcement().pid);

  const url = await coordinator({});
  const asks = (token: string): Promise<number> =>
    fetch(`${url}/tokens`, { headers: { authorization: `Bearer ${token.trim()}` } }).then(({ status }) => status);
  expect([await asks(own), await asks(theirs), await asks(rotated.stdout)]).toEqual([200, 401, 401]);
});

test("a coordinator stops at once after a second signal", async () => {
  await coordinator(fleet());
  const { pid } = announcement();
  const holder = new pg.Client({ connectionString: database.url });
  await holder.connect();
  try {
    await holder.query("begin; lock table drover.runs in access exclusive mode");
    const stuck = `select 1 from pg_stat_activity
      where application_name = 'drover' and wait_event_type = 'Lock' and datname = current_database()`;
    await expect.poll(async () => (await query(stuck)).length).toBeGreaterThan(0);
    const code = exitOf(pid);
    process.kill(pid, "SIGTERM");
    process.kill(pid, "SIGINT");
    expect(await code).toBe(130);
  } finally {
    await holder.end();
  }
});
