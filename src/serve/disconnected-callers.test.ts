import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";
import { createHttpPort } from "../wire/http-port.ts";

let database: FreshDatabase;
let coordinator: TestCoordinator;

beforeAll(async () => {
  database = await freshDatabase();
  // A held poll must not end on its own during a test.
  const options = { pollHoldMs: 200_000, leaseMs: 600_000 };
  coordinator = await startTestCoordinator({
    ...options,
    database: { url: database.url, secret: randomBytes(32) },
  });
});
afterAll(async () => {
  expect(coordinator.defects).toEqual([]);
  await coordinator.dispose();
  await database.drop();
});

test("does not follow a stream whose reader disconnected before it was admitted", async () => {
  const sockets = await Promise.all(Array.from({ length: 100 }, () => sendRaw(streamRequest())));
  for (const [index, socket] of sockets.entries()) {
    // Before, during and after the coordinator authenticates the caller.
    if (index % 3 === 0) await setImmediate();
    socket.resetAndDestroy();
  }
  await expect.poll(() => countRequests("/events")).toBeGreaterThan(50);
  await expect.poll(() => readGauge("drover_event_streams")).toBe(0);
});

test("a pipelined stream ends with its connection", async () => {
  const socket = await sendRaw(streamRequest() + streamRequest() + streamRequest());
  await expect.poll(() => readGauge("drover_event_streams")).toBe(3);
  socket.resetAndDestroy();
  await expect.poll(() => readGauge("drover_event_streams")).toBe(0);
});

test("does not wait for a runner that disconnected, at any stage of its poll", async () => {
  const port = createHttpPort({ url: coordinator.url, token: coordinator.adminToken });
  const { runner_id, epoch } = await port.register(registration("hangs up"));
  const body = JSON.stringify({ runner_id, epoch, claim_id: "c1", want: 1, ack_order: 0 });
  const poll = `POST /runner/poll HTTP/1.1\r\n${headerLines()}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  for (let round = 0; round < 30; round += 1) {
    const socket = await sendRaw(round % 2 === 0 ? poll : streamRequest() + poll);
    for (let turns = 0; turns < round; turns += 1) await setImmediate();
    socket.resetAndDestroy();
  }
  await expect.poll(() => readGauge("drover_held_polls")).toBe(0);
  const waiting = await sendRaw(streamRequest() + poll);
  await expect.poll(() => readGauge("drover_held_polls")).toBe(1);
  waiting.resetAndDestroy();
  await expect.poll(() => readGauge("drover_held_polls")).toBe(0);
  port.close();
});

const headerLines = (): string => `host: 127.0.0.1\r\nauthorization: Bearer ${coordinator.adminToken}\r\n`;
const streamRequest = (): string => `GET /events HTTP/1.1\r\n${headerLines()}accept: text/event-stream\r\n\r\n`;

/** Resolves once the request is sent. */
function sendRaw(text: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port: Number(new URL(coordinator.url).port) }, () => {
      socket.write(text, () => resolve(socket));
    });
    socket.on("error", reject).resume();
  });
}

async function readGauge(name: string): Promise<number> {
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(await fetchMetrics())?.[1]);
}

async function countRequests(path: string): Promise<number> {
  const lines = (await fetchMetrics()).split("\n").filter((line) => line.startsWith("drover_http_requests_total"));
  return lines
    .filter((line) => line.includes(`"${path}"`))
    .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

async function fetchMetrics(): Promise<string> {
  const headers = { authorization: `Bearer ${coordinator.adminToken}` };
  return (await fetch(`${coordinator.url}/metrics`, { headers })).text();
}
