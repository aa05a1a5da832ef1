import { randomBytes } from "node:crypto";
import { connect, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";

let database: FreshDatabase;
let proxy: DatabaseProxy;
let coordinator: TestCoordinator;

beforeAll(async () => {
  database = await freshDatabase();
  proxy = await startDatabaseProxy(database.url);
  coordinator = await startTestCoordinator({ database: { url: proxy.url, secret: randomBytes(32) } });
});
afterAll(async () => {
  proxy.setMode("forward");
  await coordinator.dispose();
  await proxy.close();
  await database.drop();
});

test.each([
  ["is silent", "stall", "DROVER-STA-010"],
  ["cannot be reached", "refuse", "DROVER-STA-008"],
] as const)(
  "while its record %s, a coordinator is unhealthy, says why, and recovers afterwards",
  async (_, mode, code) => {
    expect((await getHealth()).status).toBe(200);
    const reportedBefore = coordinator.defects.length;
    proxy.setMode(mode);
    await expect.poll(async () => (await getHealth()).status).toBe(503);
    await expect.poll(async () => JSON.parse((await getHealth()).text).code).toBe(code);
    const responses = await Promise.all(Array.from({ length: 20 }, getHealth));
    // Requests that need a silent record wait for it.
    const refusedLists =
      mode === "refuse" ? [await listRunsAs("drv_unknown"), await listRunsAs(coordinator.adminToken)] : [];
    for (const response of [...responses, ...refusedLists]) {
      expect(response).toMatchObject({
        status: 503,
        headers: { "content-type": "application/problem+json", connection: "close", "retry-after": "1" },
      });
      expect(JSON.parse(response.text)).toMatchObject({ detail: expect.any(String), next: expect.any(String) });
      expect(response.text).not.toMatch(/127\.0\.0\.1|postgres:\/\//);
      expect(response.text).not.toContain(new URL(proxy.url).port);
    }
    proxy.setMode("forward");
    await expect.poll(async () => (await getHealth()).status).toBe(200);
    await expect.poll(() => coordinator.client.runs.list()).toMatchObject({ items: [] });
    // One log line per error code, regardless of the number of requests.
    expect(coordinator.defects.slice(reportedBefore).map(String)).toHaveLength(
      new Set(coordinator.defects.slice(reportedBefore).map((defect) => Reflect.get(Object(defect), "code"))).size,
    );
  },
);

const listRunsAs = (token: string) =>
  rawCall(coordinator.url, { path: "/runs", headers: { authorization: `Bearer ${token}` } });
const getHealth = () => rawCall(coordinator.url, { path: "/health" });

interface DatabaseProxy {
  url: string;
  setMode(mode: "forward" | "stall" | "refuse"): void;
  close(): Promise<void>;
}

/** Starts a proxy to the database. `stall` keeps connections open but silent; `refuse` closes them and accepts none. */
async function startDatabaseProxy(url: string): Promise<DatabaseProxy> {
  const databaseUrl = new URL(url);
  const pairs = new Set<readonly [Socket, Socket]>();
  let mode: Parameters<DatabaseProxy["setMode"]>[0] = "forward";
  const server = createServer({ pauseOnConnect: true }, (clientSocket) => {
    if (mode === "refuse") return void clientSocket.resetAndDestroy();
    const databaseSocket = connect({ host: databaseUrl.hostname, port: Number(databaseUrl.port) }).pause();
    const pair = [clientSocket, databaseSocket] as const;
    pairs.add(pair);
    const closePair = (): void => {
      pairs.delete(pair);
      for (const socket of pair) socket.destroy();
    };
    clientSocket
      .on("data", (bytes) => void databaseSocket.write(bytes))
      .on("error", closePair)
      .on("close", closePair);
    databaseSocket
      .on("data", (bytes) => void clientSocket.write(bytes))
      .on("error", closePair)
      .on("close", closePair);
    if (mode === "forward") for (const socket of pair) socket.resume();
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const proxyUrl = new URL(url);
  // A TCP server's address is never a string.
  proxyUrl.port = String((server.address() as { port: number }).port);
  return {
    url: proxyUrl.href,
    setMode(newMode) {
      mode = newMode;
      for (const socket of [...pairs].flat()) {
        if (newMode === "refuse") socket.destroy();
        else if (newMode === "stall") socket.pause();
        else socket.resume();
      }
    },
    close: () =>
      new Promise((resolve) => {
        for (const socket of [...pairs].flat()) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
