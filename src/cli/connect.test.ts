import { spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it, test } from "vitest";
import { createProvingListener } from "../../test/proving.ts";
import { HostError } from "../model/errors.ts";
import { announcementFile, recordDirectory, tokenFile } from "../model/state-layout.ts";
import { toRefusal } from "../serve/refusal.ts";
import { findProject } from "../local.ts";
import { connect } from "./connect.ts";
import type { CommandInput } from "./options.ts";
import { serveStateDirectory } from "./serve-state-directory.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).toReversed()) await cleanUp();
});

const token = "drv_0123456789abcdef0123456789abcdef";
const unavailableBody = JSON.stringify(
  toRefusal(new HostError({ code: "DROVER-STA-008", message: "unavailable" })).problem,
);
const isRoot = process.getuid?.() === 0;

function createDirectory(): string {
  const cwd = mkdtempSync(join(tmpdir(), "drover-connect-"));
  cleanups.push(() => rmSync(cwd, { recursive: true, force: true }));
  return cwd;
}

const createInput = (cwd: string, env: Record<string, string> = {}): CommandInput => ({
  options: {},
  positionals: [],
  rest: null,
  extraOptions: [],
  env: { DROVER_STATE_DIR: cwd, ...env },
  cwd,
});

async function startServer(listener: RequestListener, address: string | number): Promise<Server> {
  const server = createServer(listener);
  await new Promise<void>(
    (resolve) =>
      void (typeof address === "string"
        ? server.listen(address, resolve)
        : server.listen(address, "127.0.0.1", resolve)),
  );
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return server;
}

/** Creates a state directory with a coordinator's announcement and token, and a server at the announced address. */
async function createStateDirectory(
  listener: RequestListener,
  announcement: Record<string, unknown> = {},
): Promise<string> {
  const cwd = createDirectory();
  // A server that listens on TCP has an AddressInfo.
  const { port } = (await startServer(listener, 0)).address() as { port: number };
  const url = `http://127.0.0.1:${port}`;
  const record = recordDirectory(cwd);
  mkdirSync(record, { mode: 0o700 });
  writeFileSync(
    announcementFile(record),
    JSON.stringify({ url, pid: process.pid, token_file: "token", ...announcement }),
  );
  writeFileSync(tokenFile(record, "token"), `${token}\n`, { mode: 0o600 });
  return cwd;
}

const unavailable: RequestListener = (_, response) => void response.writeHead(503).end(unavailableBody);
const healthy: RequestListener = (_, response) =>
  void response.end(JSON.stringify({ status: "ok", version: "0", protocol: 1 }));

it.each([
  ["finds a coordinator whose record is unavailable", createProvingListener(token, unavailable), true],
  ["finds a healthy coordinator", createProvingListener(token, healthy), true],
  ["ignores a coordinator with another token", createProvingListener("drv_other", healthy), false],
  ["ignores a server that claims to be healthy without proof", healthy, false],
  ["ignores a server that responds with an error", unavailable, false],
])("%s", async (_what, listener, isFound) => {
  const { client } = await connect(createInput(await createStateDirectory(listener)));
  expect(client !== null).toBe(isFound);
});

test("does not use the announced port without a token", async () => {
  const cwd = await createStateDirectory(createProvingListener(token, healthy));
  rmSync(tokenFile(recordDirectory(cwd), "token"));
  expect((await connect(createInput(cwd))).client).toBeNull();
});

test("a coordinator creates a private socket that commands try first, and removes it when it stops", async () => {
  const cwd = createDirectory();
  const input = createInput(cwd);
  const coordinator = await serveStateDirectory(input, await findProject(input.env, cwd), {
    host: "127.0.0.1",
    port: 0,
  });
  coordinator.announce();
  const socket = join(recordDirectory(cwd), "sock");
  expect(lstatSync(socket).mode & 0o777).toBe(0o600);
  const { client, target } = await connect(input);
  expect(target?.url).toBe(`unix:${socket}`);
  expect(client?.url).toBe(coordinator.url);
  await expect(client?.me()).resolves.toMatchObject({ role: "admin" });
  // Without the socket, the coordinator has to prove itself on the port.
  renameSync(socket, `${socket}.moved`);
  expect((await connect(input)).target?.url).toBe(coordinator.url);
  renameSync(`${socket}.moved`, socket);
  await coordinator.stop();
  expect(existsSync(socket)).toBe(false);
});

test("replaces the socket of a killed coordinator", async () => {
  const cwd = createDirectory();
  mkdirSync(recordDirectory(cwd), { mode: 0o700 });
  const socket = join(recordDirectory(cwd), "sock");
  const script = `require("node:net").createServer().listen(${JSON.stringify(socket)}, () => process.kill(process.pid, "SIGKILL"))`;
  const child = spawn(process.execPath, ["-e", script]);
  await new Promise((resolve) => child.once("close", resolve));
  expect(existsSync(socket)).toBe(true);
  const input = createInput(cwd);
  const coordinator = await serveStateDirectory(input, await findProject(input.env, cwd), {
    host: "127.0.0.1",
    port: 0,
  });
  cleanups.push(() => coordinator.stop());
  coordinator.announce();
  expect((await connect(input)).target?.url).toBe(`unix:${socket}`);
});

test("puts the socket into the user's runtime directory if the path is too long", async () => {
  const runtime = createDirectory();
  const cwd = join(createDirectory(), "long-".repeat(25));
  mkdirSync(cwd, { mode: 0o700 });
  const input = createInput(cwd, { XDG_RUNTIME_DIR: runtime });
  const coordinator = await serveStateDirectory(input, await findProject(input.env, cwd), {
    host: "127.0.0.1",
    port: 0,
  });
  cleanups.push(() => coordinator.stop());
  coordinator.announce();
  expect(coordinator.socket).toMatch(new RegExp(`^${runtime}/drover/[0-9a-f]{12}\\.sock$`));
  const { client, target } = await connect(input);
  expect(target?.url).toBe(`unix:${coordinator.socket}`);
  await expect(client?.me()).resolves.toMatchObject({ role: "admin" });
});

const nobody = 65_534;
const unsafeCases: [what: string, makeUnsafe: (record: string) => void, requiresRoot?: true][] = [
  ["a directory that a group can write to", (record) => chmodSync(record, 0o770)],
  ["a directory that everybody can write to", (record) => chmodSync(record, 0o777)],
  ["a sticky directory that everybody can write to, such as /tmp", (record) => chmodSync(record, 0o1777)],
  ["a directory of another user", (record) => chownSync(record, nobody, nobody), true],
  ["an announcement of another user", (record) => chownSync(announcementFile(record), nobody, nobody), true],
  ["a token of another user", (record) => chownSync(tokenFile(record, "token"), nobody, nobody), true],
  [
    "a link in place of the announcement",
    (record) => {
      renameSync(announcementFile(record), join(record, "moved"));
      symlinkSync("moved", announcementFile(record));
    },
  ],
  [
    "a link in place of the token",
    (record) => {
      renameSync(tokenFile(record, "token"), join(record, "moved"));
      symlinkSync("moved", tokenFile(record, "token"));
    },
  ],
  [
    "a link in place of the directory",
    (record) => {
      renameSync(record, `${record}.moved`);
      symlinkSync(`${record}.moved`, record);
    },
  ],
  [
    "a directory in place of the announcement",
    (record) => {
      rmSync(announcementFile(record));
      mkdirSync(announcementFile(record));
    },
  ],
];

it.each(unsafeCases.filter(([, , requiresRoot]) => !requiresRoot || isRoot))(
  "uses neither address nor token from %s",
  async (_what, makeUnsafe) => {
    let requests = 0;
    const cwd = await createStateDirectory((request, response) => {
      requests += 1;
      createProvingListener(token, healthy)(request, response);
    });
    makeUnsafe(recordDirectory(cwd));
    await expect(connect(createInput(cwd))).rejects.toMatchObject({
      code: "DROVER-API-027",
    });
    expect(requests).toBe(0);
  },
);
