import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { sampleRun } from "../../test/fixtures/record/sample.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";
import { toResultEvent } from "../model/outcome.ts";

const maxRequests = 10;
const lines = 60;
let coordinator: TestCoordinator;
let run_id = "";
/** The id of a run with a result of 16 MB. */
let large_id = "";
let stalledToken = "";
const sockets: Socket[] = [];

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

interface UnreadRequest {
  path: () => string;
  accept?: string;
  method?: string;
  version?: string;
  headers?: string;
  /** Pipelined requests per connection. */
  times?: number;
  /** Bytes that the reader reads before it stops. */
  reads?: number;
}

const unreadRequests: [string, UnreadRequest][] = [
  ["the stream of a run", { path: () => `/runs/${run_id}/events`, accept: "text/event-stream" }],
  ["the stream of all runs", { path: () => "/events", accept: "text/event-stream" }],
  ["a stream of all runs that follows one", { path: () => `/events?follow=${run_id}`, accept: "text/event-stream" }],
  ["a stream that is half read", { path: () => `/runs/${run_id}/events`, accept: "text/event-stream", reads: 100_000 }],
  ["a page of the log", { path: () => `/runs/${run_id}/events?limit=1000` }],
  ["pages of the log, pipelined", { path: () => `/runs/${run_id}/events?limit=1000`, times: 30 }],
  ["streams, pipelined", { path: () => `/runs/${run_id}/events`, accept: "text/event-stream", times: 3 }],
  ["a page over HTTP/1.0", { path: () => `/runs/${run_id}/events?limit=1000`, version: "1.0" }],
  [
    "a page over HTTP/1.0 that is kept alive",
    { path: () => "/runs", version: "1.0", headers: "connection: keep-alive" },
  ],
  ["a result of 16 MB", { path: () => `/runs/${large_id}` }],
  ["a result of 16 MB, half read", { path: () => `/runs/${large_id}`, reads: 1_000_000 }],
  ["HEAD of a result", { path: () => `/runs/${large_id}`, method: "HEAD" }],
  ["a backup", { path: () => "/backup", method: "POST" }],
  ["a packed backup", { path: () => "/backup", method: "POST", headers: "accept-encoding: gzip" }],
  ["the check of the audit chain", { path: () => "/audit/verify", method: "POST" }],
  ["the description of the API, many times", { path: () => "/openapi.json", times: 40 }],
  ["refusals, many times", { path: () => "/runs/none", times: 200 }],
];

describe.each(["SQLite", "PostgreSQL"])("on %s", (engine) => {
  let database: FreshDatabase | null = null;
  beforeAll(async () => {
    if (engine === "PostgreSQL") database = await freshDatabase();
    coordinator = await startTestCoordinator({
      leaseMs: 3_600_000,
      stalledMs: 300,
      requestLimits: { requests: maxRequests, unreadBytes: 2 ** 20, totalRequests: 1000 },
      ...(database === null ? {} : { database: { url: database.url, secret: randomBytes(32) } }),
    });
    run_id = await storeRun(coordinator, lines, null);
    large_id = await storeRun(coordinator, 1, "y".repeat(16_000_000));
    stalledToken = (await coordinator.client.tokens.create({ role: "admin", subject: "stalled" })).token;
  });
  afterAll(async () => {
    expect(coordinator.defects).toEqual([]);
    await coordinator.dispose();
    await database?.drop();
  });

  test.each(unreadRequests)("%s that nobody reads affects no other caller and is disconnected", async (_, request) => {
    for (let index = 0; index < maxRequests; index += 1) sendAndStall(request);
    // Another caller reads the whole log meanwhile.
    let seen = 0;
    for await (const { event } of coordinator.client.runs.follow(run_id)) seen += event.type === "output" ? 1 : 0;
    expect(seen).toBe(lines);
    // The stalled readers no longer count, although their connections are still open.
    await expect.poll(fetchStatus, { timeout: 60_000 }).toBe(200);
  });
});

test("counts unread pages of one caller by their bytes", async () => {
  // More than the kernel buffers for a connection, so the rest is held by the coordinator.
  const request = { path: () => `/runs/${run_id}/events?limit=1000`, times: 150 };
  const own = await startSeparateCoordinator(3_600_000);
  try {
    sendAndStall({ ...request, path: () => own.path }, own);
    await expect.poll(() => own.status(), { timeout: 60_000 }).toBe(429);
    expect(await own.problem()).toMatchObject({ code: "DROVER-LIM-001", detail: expect.stringContaining("unread") });
    for (const socket of sockets.splice(0)) socket.destroy();
    await expect.poll(() => own.status(), { timeout: 60_000 }).toBe(200);
  } finally {
    await own.dispose();
  }
});

/** Starts a coordinator without a stall timeout that allows many requests per caller. */
async function startSeparateCoordinator(stalledMs: number) {
  const requestLimits = { requests: 1000, unreadBytes: 2 ** 20, totalRequests: 1000 };
  const own = await startTestCoordinator({ leaseMs: 3_600_000, stalledMs, requestLimits });
  const storedId = await storeRun(own, 8, null);
  const { token } = await own.client.tokens.create({ role: "admin", subject: "stalled" });
  const get = () => fetch(`${own.url}/me`, { headers: { authorization: `Bearer ${token}` } });
  return {
    url: own.url,
    token,
    path: `/runs/${storedId}/events?limit=1000`,
    status: async () => (await get()).status,
    problem: async () => (await get()).json(),
    async dispose() {
      expect(own.defects).toEqual([]);
      await own.dispose();
    },
  };
}

/** Stores a finished run with 64 KB of output per event. */
async function storeRun({ store }: TestCoordinator, count: number, result_text: string | null): Promise<string> {
  const run = sampleRun({ created_by: "admin", started_at: null });
  const at = new Date().toISOString();
  const event = { type: "output" as const, stream: "stdout" as const, text: "x".repeat(64 * 1024) };
  const events = Array.from({ length: count }, (_, index) => ({ n: index + 1, at, event }));
  const result = toResultEvent({ status: "completed", exit_code: 0, text: result_text });
  const stored = await store.apply([
    { op: "create_run", run, events: [] },
    { op: "append_events", run_id: run.run_id, attempt: 1, events },
    { op: "finish_run", run_id: run.run_id, attempt: 1, at, events: [], result, isolation: null },
  ]);
  expect(stored.map(({ ok }) => ok)).toEqual([true, true, true]);
  return run.run_id;
}

function sendAndStall(request: UnreadRequest, { url, token } = { url: coordinator.url, token: stalledToken }): void {
  const { path, accept = "application/json", method = "GET", version = "1.1", headers, times = 1, reads = 0 } = request;
  const { port, host } = new URL(url);
  const socket = connect(Number(port), "127.0.0.1").on("error", () => undefined);
  sockets.push(socket);
  let remaining = reads;
  if (reads === 0) socket.pause();
  else socket.on("data", (bytes: Buffer) => void ((remaining -= bytes.length) <= 0 && socket.pause()));
  const head = [
    `${method} ${path()} HTTP/${version}`,
    `host: ${host}`,
    `authorization: Bearer ${token}`,
    `accept: ${accept}`,
    ...(method === "POST" ? ["content-length: 0"] : []),
    ...(headers ? [headers] : []),
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`.repeat(times));
}

async function fetchStatus(): Promise<number> {
  return (await fetch(`${coordinator.url}/me`, { headers: { authorization: `Bearer ${stalledToken}` } })).status;
}
