import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildSync } from "esbuild";
import pg from "pg";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type PostgresOptions, type PostgresServer, startPostgres } from "./server.ts";

let cleanUps: (() => unknown)[];
beforeEach(() => void (cleanUps = []));
afterEach(async () => {
  for (const cleanUp of cleanUps.toReversed()) await cleanUp();
});

async function start(options?: PostgresOptions): Promise<PostgresServer> {
  const server = await startPostgres(options);
  cleanUps.push(server.stop);
  return server;
}

async function connect(options: pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client(options);
  // A killed server is not an error of the test.
  client.on("error", () => undefined);
  await client.connect();
  cleanUps.push(() => client.end());
  return client;
}

/** What the server has in the system besides its directory. */
function findTraces(dataDirectory: string): { pid: number; sharedMemory: string } {
  const lines = readFileSync(join(dataDirectory, "postmaster.pid"), "utf8").split("\n");
  return { pid: Number(lines[0]), sharedMemory: lines[6]?.trim().split(/\s+/)[1] ?? "" };
}

function expectNothingOf({ pid, sharedMemory }: { pid: number; sharedMemory: string }): void {
  expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  const segments = existsSync("/proc/sysvipc/shm") ? readFileSync("/proc/sysvipc/shm", "utf8").split("\n") : [];
  expect(segments.map((line) => line.trim().split(/\s+/)[1])).not.toContain(sharedMemory);
}

it("accepts connections over TCP and its socket, and creates separate databases", async () => {
  const server = await start();
  const urls = await Promise.all([1, 2, 3].map(() => server.createDatabase()));
  expect(new Set(urls).size).toBe(3);
  const [one, other] = await Promise.all(urls.map((connectionString) => connect({ connectionString })));
  await one?.query("create table rows (text text)");
  await expect(other?.query("select * from rows")).rejects.toThrow("does not exist");
  const { username, password, pathname } = new URL(urls[0] ?? "");
  const socketClient = await connect({
    host: server.socketDirectory,
    port: server.port,
    user: username,
    password,
    database: pathname.slice(1),
  });
  await socketClient.query("insert into rows values ('🐑')");
  expect((await one?.query("select text from rows"))?.rows).toEqual([{ text: "🐑" }]);
  await expect(connect({ connectionString: server.url().replace(password, "guessed") })).rejects.toThrow("password");
});

it("still has what was committed after it is killed and restarted, at the same address", async () => {
  const server = await start();
  const connectionString = await server.createDatabase();
  const client = await connect({ connectionString });
  await client.query("create table rows (n int)");
  await client.query("insert into rows values (1)");
  await client.query("begin");
  await client.query("insert into rows values (2)");
  const { pid } = findTraces(server.dataDirectory);
  server.kill("SIGKILL");
  await server.restart();
  expect(findTraces(server.dataDirectory).pid).not.toBe(pid);
  const secondClient = await connect({ connectionString });
  expect((await secondClient.query("select n from rows")).rows).toEqual([{ n: 1 }]);
  await server.restart();
  const thirdClient = await connect({ connectionString });
  expect((await thirdClient.query("select n from rows")).rows).toEqual([{ n: 1 }]);
});

it("accepts settings", async () => {
  const server = await start({ settings: { max_connections: 7, application_name: "it's ours" } });
  const client = await connect({ connectionString: server.url() });
  expect((await client.query("show max_connections")).rows).toEqual([{ max_connections: "7" }]);
  expect((await client.query("show application_name")).rows).toEqual([{ application_name: "it's ours" }]);
});

it("says why it cannot start, and leaves nothing behind", async () => {
  const failure = startPostgres({ settings: { shared_buffers: "plenty" } });
  await expect(failure).rejects.toThrow(/invalid value for parameter "shared_buffers": "plenty"/);
  const message = await failure.catch(String);
  const directory = /did not start in (\S+)/.exec(String(message))?.[1] ?? "";
  expect(directory).toContain("drover-postgres-");
  expect(existsSync(directory)).toBe(false);
});

it("leaves nothing behind when it is stopped, even if it was killed in the middle of its work", async () => {
  const server = await start();
  const client = await connect({ connectionString: server.url() });
  const { rows } = await client.query("select pg_backend_pid() as pid");
  const busyQuery = expect(client.query("do $$ begin loop null; end loop; end $$")).rejects.toThrow(
    /terminated|ECONNRESET/,
  );
  const traces = findTraces(server.dataDirectory);
  const watch = await connect({ connectionString: server.url() });
  const active = `select count(*)::int as n from pg_stat_activity where pid = ${rows[0].pid} and state = 'active'`;
  await expect.poll(async () => (await watch.query(active)).rows).toEqual([{ n: 1 }]);
  server.kill("SIGKILL");
  await Promise.all([server.stop(), server.stop()]);
  await busyQuery;
  expect(existsSync(server.socketDirectory)).toBe(false);
  expectNothingOf(traces);
});

/** Starts a server in another process, whose temporary directory is `temporary`. */
function startElsewhere(temporary: string): ChildProcess {
  const script = join(mkdtempSync(join(tmpdir(), "drover-postgres-test-")), "start.cjs");
  cleanUps.push(() => rmSync(join(script, ".."), { recursive: true }));
  buildSync({
    stdin: {
      contents: `
        import { startPostgres } from "./server.ts";
        startPostgres({ sourceDirectory: ${JSON.stringify(import.meta.dirname)} }).then(({ dataDirectory }) => {
          process.stdout.write(dataDirectory);
          setInterval(() => {}, 1000);
        });`,
      resolveDir: import.meta.dirname,
    },
    outfile: script,
    bundle: true,
    platform: "node",
    format: "cjs",
    logOverride: { "empty-import-meta": "silent" },
  });
  const child = spawn(process.execPath, [script], {
    env: { ...process.env, TMPDIR: temporary },
    stdio: ["ignore", "pipe", "inherit"],
  });
  cleanUps.push(() => child.kill("SIGKILL"));
  return child;
}

function newTemporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "drover-postgres-test-"));
  chmodSync(directory, 0o755); // Another user may run PostgreSQL.
  cleanUps.push(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

it("stops with the process that started it, even if that is killed", async () => {
  const temporary = newTemporaryDirectory();
  const child = startElsewhere(temporary);
  const dataDirectory = await new Promise<string>((resolve) =>
    child.stdout?.once("data", (said) => resolve(`${said}`)),
  );
  const traces = findTraces(dataDirectory);
  process.kill(traces.pid, 0);
  child.kill("SIGKILL");
  await expect.poll(() => readdirSync(temporary)).toEqual([]);
  expectNothingOf(traces);
});

it("leaves nothing behind if the process that started it is killed during startup", async () => {
  const temporary = newTemporaryDirectory();
  const child = startElsewhere(temporary);
  // initdb runs servers too, one after the other.
  const traces = await vi.waitFor(
    () => {
      const [directory = ""] = readdirSync(temporary);
      const newTraces = findTraces(join(temporary, directory, "data"));
      expect(newTraces.sharedMemory).not.toBe("");
      return newTraces;
    },
    { timeout: 120_000, interval: 2 },
  );
  child.kill("SIGKILL");
  await expect.poll(() => readdirSync(temporary)).toEqual([]);
  expectNothingOf(traces);
});
