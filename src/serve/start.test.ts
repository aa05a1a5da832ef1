import { chmodSync, chownSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { recordDirectory, tokenFile } from "../model/state-layout.ts";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import { startCoordinator } from "../coordinator.ts";

let running: TestCoordinator | null = null;
afterEach(async () => {
  await running?.dispose();
  running = null;
});

test("a fresh start listens on loopback with a random admin token that only its user can read", async () => {
  running = await startTestCoordinator();
  expect(new URL(running.url).hostname).toBe("127.0.0.1");
  const file = tokenFile(recordDirectory(running.directory), "token");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const token = readFileSync(file, "utf8").trim();
  // 32 characters of base62 are 190 bits.
  expect(token).toMatch(/^drv_[0-9A-Za-z]{32}$/);
  expect(running.adminToken).toBe(token);
  expect((await rawCall(running.url, { path: "/runs" })).status).toBe(401);
  expect((await running.client.runs.list()).items).toEqual([]);
});

test("two directories get different tokens, and a restart keeps the token", async () => {
  running = await startTestCoordinator();
  const other = await startTestCoordinator();
  expect(other.adminToken).not.toBe(running.adminToken);
  await other.stop();
  const restarted = await startCoordinator({ stateDirectory: other.directory, port: 0 });
  expect(restarted.adminToken).toBe(other.adminToken);
  await restarted.stop();
  await other.dispose();
});

test("stores no token in plain text", async () => {
  running = await startTestCoordinator();
  const created = await running.client.tokens.create({ role: "user", subject: "ann" });
  await running.stop();
  for (const name of ["drover.db", "drover.db-wal"]) {
    const file = join(running.directory, name);
    if (!statSync(file, { throwIfNoEntry: false })) continue;
    const bytes = readFileSync(file, "latin1");
    expect(bytes).not.toContain(running.adminToken);
    expect(bytes).not.toContain(created.token);
  }
});

test.each(["0.0.0.0", "::", "192.0.2.7", "example.org"])("refuses to listen on %s without auth", async (host) => {
  await expect(startTestCoordinator({ host, authEnabled: false })).rejects.toMatchObject({ code: "DROVER-API-025" });
});

test.each(["drover.example", "drover.example:8765", "ftp://drover.example", "https://", "", "/x", "file:///etc"])(
  "refuses an invalid public URL: %j",
  async (url) => {
    await expect(startTestCoordinator({ publicUrls: ["https://good.example", url] })).rejects.toMatchObject({
      code: "DROVER-USE-001",
      field: "--public-url",
      message: expect.stringContaining(`"${url}"`),
      next: expect.stringContaining("https://"),
    });
  },
);

test("without auth, a coordinator works on loopback and still refuses other web pages", async () => {
  running = await startTestCoordinator({ authEnabled: false });
  expect((await rawCall(running.url, { path: "/runs" })).status).toBe(200);
  const foreignResponse = await rawCall(running.url, { path: "/runs", headers: { origin: "https://evil.example" } });
  expect(foreignResponse.status).toBe(403);
});

test("refuses a token file that others can read", async () => {
  running = await startTestCoordinator();
  await running.stop();
  chmodSync(tokenFile(recordDirectory(running.directory), "token"), 0o644);
  await expect(startCoordinator({ stateDirectory: running.directory, port: 0 })).rejects.toMatchObject({
    code: "DROVER-API-027",
  });
  chmodSync(tokenFile(recordDirectory(running.directory), "token"), 0o600);
  writeFileSync(tokenFile(recordDirectory(running.directory), "token"), "not a token");
  await expect(startCoordinator({ stateDirectory: running.directory, port: 0 })).rejects.toMatchObject({
    code: "DROVER-API-027",
  });
});

const nobody = 65_534;
test.runIf(process.getuid?.() === 0).each<[string, (file: string) => void]>([
  ["of another user", (file) => chownSync(file, nobody, nobody)],
  ["in a directory of another user", (file) => chownSync(dirname(file), nobody, nobody)],
])("refuses a token file %s", async (_what, spoil) => {
  running = await startTestCoordinator();
  await running.stop();
  spoil(tokenFile(recordDirectory(running.directory), "token"));
  await expect(startCoordinator({ stateDirectory: running.directory, port: 0 })).rejects.toMatchObject({
    message: expect.stringContaining(`belongs to another user (uid ${nobody})`),
    next: expect.stringContaining("DROVER_STATE_DIR"),
  });
});

test("reports a port in use with a next step", async () => {
  const portHolder = createServer();
  await new Promise<void>((resolve) => void portHolder.listen(0, "127.0.0.1", resolve));
  // The address of a TCP server is never a string.
  const { port } = portHolder.address() as { port: number };
  try {
    await expect(startTestCoordinator({ port })).rejects.toMatchObject({
      code: "DROVER-API-026",
      next: expect.stringContaining("--port"),
    });
  } finally {
    portHolder.close();
  }
});

test("stopping is idempotent and ends streams", async () => {
  running = await startTestCoordinator();
  const stream = rawCall(running.url, {
    path: "/events",
    headers: { authorization: `Bearer ${running.adminToken}`, accept: "text/event-stream" },
  });
  await expect.poll(async () => running?.client.health()).toMatchObject({ status: "ok" });
  await Promise.all([running.stop(), running.stop()]);
  expect((await stream).status).toBe(200);
});
