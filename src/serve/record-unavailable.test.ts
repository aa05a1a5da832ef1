import { randomBytes } from "node:crypto";
import { connect, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";

let database: FreshDatabase;
let way: Way;
let coordinator: TestCoordinator;

beforeAll(async () => {
  database = await freshDatabase();
  way = await openWay(database.url);
  coordinator = await startTestCoordinator({ database: { url: way.url, secret: randomBytes(32) } });
});
afterAll(async () => {
  way.let("through");
  await coordinator.dispose();
  await way.close();
  await database.drop();
});

test.each([
  ["is silent", "nothing", "DROVER-STA-010"],
  ["cannot be reached", "away", "DROVER-STA-008"],
] as const)(
  "while its record %s, a coordinator is unhealthy, says why, and recovers afterwards",
  async (_, what, code) => {
    expect((await health()).status).toBe(200);
    const reportedBefore = coordinator.defects.length;
    way.let(what);
    await expect.poll(async () => (await health()).status).toBe(503);
    await expect.poll(async () => JSON.parse((await health()).text).code).toBe(code);
    const responses = await Promise.all(Array.from({ length: 20 }, health));
    // Requests that need a silent record wait for it.
    const strangers = what === "away" ? [await askAs("drv_stranger"), await askAs(coordinator.adminToken)] : [];
    for (const response of [...responses, ...strangers]) {
      expect(response).toMatchObject({
        status: 503,
        headers: { "content-type": "application/problem+json", connection: "close", "retry-after": "1" },
      });
      expect(JSON.parse(response.text)).toMatchObject({ detail: expect.any(String), next: expect.any(String) });
      expect(response.text).not.toMatch(/127\.0\.0\.1|postgres:\/\//);
      expect(response.text).not.toContain(new URL(way.url).port);
    }
    way.let("through");
    await expect.poll(async () => (await health()).status).toBe(200);
    await expect.poll(() => coordinator.client.runs.list()).toMatchObject({ items: [] });
    // One log line per error code, regardless of the number of requests.
    expect(coordinator.defects.slice(reportedBefore).map(String)).toHaveLength(
      new Set(coordinator.defects.slice(reportedBefore).map((defect) => Reflect.get(Object(defect), "code"))).size,
    );
  },
);

const askAs = (token: string) =>
  rawCall(coordinator.url, { path: "/runs", headers: { authorization: `Bearer ${token}` } });
const health = () => rawCall(coordinator.url, { path: "/health" });

interface Way {
  url: string;
  let(what: "through" | "nothing" | "away"): void;
  close(): Promise<void>;
}

/** A proxy to the database. `nothing` keeps connections open but silent; `away` closes them and accepts none. */
async function openWay(url: string): Promise<Way> {
  const to = new URL(url);
  const pairs = new Set<readonly [Socket, Socket]>();
  let now: Parameters<Way["let"]>[0] = "through";
  const server = createServer({ pauseOnConnect: true }, (near) => {
    if (now === "away") return void near.resetAndDestroy();
    const far = connect({ host: to.hostname, port: Number(to.port) }).pause();
    const pair = [near, far] as const;
    pairs.add(pair);
    const leave = (): void => {
      pairs.delete(pair);
      for (const socket of pair) socket.destroy();
    };
    near
      .on("data", (bytes) => void far.write(bytes))
      .on("error", leave)
      .on("close", leave);
    far
      .on("data", (bytes) => void near.write(bytes))
      .on("error", leave)
      .on("close", leave);
    if (now === "through") for (const socket of pair) socket.resume();
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const here = new URL(url);
  // a TCP server's address is never a string
  here.port = String((server.address() as { port: number }).port);
  return {
    url: here.href,
    let(what) {
      now = what;
      for (const socket of [...pairs].flat()) {
        if (what === "away") socket.destroy();
        else if (what === "nothing") socket.pause();
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
