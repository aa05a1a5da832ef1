import { connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { sampleRun } from "../../test/fixtures/record/sample.ts";
import { readSse } from "../wire/sse.ts";

let coordinator: TestCoordinator;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  expect(coordinator.defects).toEqual([]);
  await coordinator.dispose();
});

const streamHeaders = { accept: "text/event-stream" };

test("limits the streams of one subject across its tokens, without limiting other callers", async () => {
  coordinator = await startTestCoordinator({
    requestLimits: { requests: 3, unreadBytes: 2 ** 20, totalRequests: 100 },
  });
  const [ann, annsSecondToken, bob] = [await createToken("ann"), await createToken("ann"), await createToken("bob")];
  const disconnect = new AbortController();
  for (const token of [ann, ann, annsSecondToken])
    expect((await get(token, streamHeaders, disconnect.signal)).status).toBe(200);
  for (const path of ["/events", "/runs", "/agents"]) {
    const response = await get(ann, streamHeaders, undefined, path);
    expect([response.status, response.headers.get("retry-after")]).toEqual([429, "5"]);
    expect(await response.json()).toMatchObject({ code: "DROVER-LIM-001" });
  }
  expect((await get(bob, {})).status).toBe(200);
  expect((await fetch(`${coordinator.url}/health`)).status).toBe(200);
  disconnect.abort();
  await expect.poll(async () => (await get(ann, {})).status).toBe(200);
});

test("unfinished requests without a token do not lock out other callers", async () => {
  coordinator = await startTestCoordinator({
    requestLimits: { requests: 3, unreadBytes: 2 ** 20, totalRequests: 100 },
  });
  const { port } = new URL(coordinator.url);
  const partialRequest = `POST /proof HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{`;
  for (let index = 0; index < 12; index += 1) {
    const socket = connect({ port: Number(port), host: "127.0.0.1", localAddress: `127.0.0.${1 + (index % 4)}` });
    sockets.push(socket.on("error", () => undefined));
    await new Promise<void>((resolve) => socket.write(partialRequest, () => resolve()));
  }
  expect((await fetch(`${coordinator.url}/health`)).status).toBe(200);
  await expect(coordinator.client.me()).resolves.toMatchObject({ role: "admin" });
});

test("limits the open requests of all callers together", async () => {
  coordinator = await startTestCoordinator({ requestLimits: { requests: 3, unreadBytes: 2 ** 20, totalRequests: 4 } });
  const disconnect = new AbortController();
  for (const subject of ["ann", "bob", "cid", "dan"])
    expect((await get(await createToken(subject), streamHeaders, disconnect.signal)).status).toBe(200);
  const response = await get(coordinator.adminToken, streamHeaders);
  expect(response.status).toBe(503);
  expect(await response.json()).toMatchObject({ code: "DROVER-LIM-001" });
  disconnect.abort();
});

test("sends no large response to a caller with too many unread bytes", async () => {
  coordinator = await startTestCoordinator({
    requestLimits: { requests: 100, unreadBytes: 2 ** 20, totalRequests: 100 },
  });
  const { client, url, adminToken } = coordinator;
  await client.agents.put("work", { command: "true" });
  const page = `/runs/${await createLargeRun()}/events?limit=1000`;
  const ann = await createToken("ann", "admin");
  // The response to this batch is larger than what the kernel buffers for a connection.
  const createBatch = (name: string) =>
    JSON.stringify({
      runs: Array.from({ length: 18 }, (_, index) => ({
        agent_name: "work",
        prompt: "x".repeat(1_000_000),
        idempotency_key: `${name}-${index}`,
      })),
    });
  const postBatch = (token: string, name: string) =>
    fetch(`${url}/runs/batch`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: createBatch(name),
    });
  const body = createBatch("unread");
  const socket = connect(Number(new URL(url).port), "127.0.0.1").on("error", () => undefined);
  sockets.push(socket.pause());
  socket.write(
    `POST /runs/batch HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${adminToken}\r\nconnection: close\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await expect.poll(async () => (await get(adminToken, {}, undefined, page)).status, { timeout: 60_000 }).toBe(429);
  // The write has taken effect, so the coordinator closes the connection instead of refusing the request.
  await expect(postBatch(adminToken, "withheld")).rejects.toThrow();
  expect((await get(adminToken, {}, undefined, "/me")).status).toBe(200);
  expect((await get(ann, {}, undefined, page)).status).toBe(200);
  socket.resume();
  await expect.poll(async () => (await get(adminToken, {}, undefined, page)).status, { timeout: 60_000 }).toBe(200);
  const repeated = await postBatch(adminToken, "withheld");
  expect(repeated.status).toBe(200);
  await repeated.body?.cancel();
  expect((await client.runs.list({ agent_name: "work", limit: 100 })).items).toHaveLength(36);
});

test("a disconnected reader resumes after the last event it received", async () => {
  coordinator = await startTestCoordinator();
  const run_id = await createLargeRun();
  const seen: number[] = [];
  for (let last = 0; last < 61;) {
    const headers = { ...streamHeaders, "last-event-id": String(last) };
    const response = await get(coordinator.adminToken, headers, undefined, `/runs/${run_id}/events`);
    let remaining = 7;
    for await (const { id } of readSse(response.body!)) {
      seen.push((last = Number(id)));
      if ((remaining -= 1) === 0 || last === 61) break;
    }
  }
  expect(seen).toEqual(Array.from({ length: 61 }, (_, index) => index + 1));
});

test("a page of large events ends before its limit and has a next_cursor", async () => {
  coordinator = await startTestCoordinator();
  const run_id = await createLargeRun();
  const seen: number[] = [];
  let pages = 0;
  for (let after: number | null = 0; after !== null; pages += 1) {
    const page: Awaited<ReturnType<typeof coordinator.client.runs.events>> = await coordinator.client.runs.events(
      run_id,
      { after, limit: 1000 },
    );
    seen.push(...page.items.map(({ seq }) => seq));
    after = page.next_cursor;
  }
  expect(seen).toEqual(Array.from({ length: 61 }, (_, index) => index + 1));
  expect(pages).toBeGreaterThan(5);
});

/** Creates a run with 61 events, several megabytes in total. */
async function createLargeRun(): Promise<string> {
  const { store } = coordinator;
  const run = sampleRun({ created_by: "admin", started_at: null });
  const { run_id } = run;
  await store.apply([{ op: "create_run", run, events: [] }]);
  const text = "x".repeat(64 * 1024);
  const at = new Date().toISOString();
  const events = Array.from({ length: 61 }, (_, index) => ({
    n: index + 1,
    at,
    event: { type: "output" as const, stream: "stdout" as const, text },
  }));
  const [stored] = await store.apply([{ op: "append_events", run_id, attempt: 1, events }]);
  expect(stored.ok).toBe(true);
  return run_id;
}

async function createToken(subject: string, role: "user" | "admin" = "user"): Promise<string> {
  return (await coordinator.client.tokens.create({ role, subject })).token;
}

function get(
  token: string,
  headers: Record<string, string>,
  signal?: AbortSignal,
  path = "/events",
): Promise<Response> {
  return fetch(`${coordinator.url}${path}`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
    ...(signal ? { signal } : {}),
  });
}
