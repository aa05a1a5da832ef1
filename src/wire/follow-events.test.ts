import { createServer as createHttpServer } from "node:http";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, expect, test } from "vitest";
import { registration, startTestCoordinator } from "../../test/coordinator.ts";
import { reservePort } from "../../test/reserve-port.ts";
import type { StoredEvent } from "../model/event.ts";
import type { RunnerPort } from "../model/runner-port.ts";
import { createClient } from "./client.ts";

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

test("delivers every line once and in order, although connections are interrupted at random", async () => {
  const proxyPort = await reservePort();
  const { coordinator, write, run_id } = await createRunningRun([`http://127.0.0.1:${proxyPort}`]);
  const proxy = await startCuttingProxy(coordinator.url, proxyPort);
  const lines = 10_000;
  const readers = Array.from({ length: 20 }, async () => {
    const client = createClient({ url: proxy.url, token: coordinator.adminToken });
    let cuts = 0;
    const events: StoredEvent[] = [];
    for await (const event of client.runs.follow(run_id, { onReconnect: () => (cuts += 1) })) events.push(event);
    return { events, cuts };
  });
  // Ten interruptions per reader: with endless ones, a slow machine would make no progress.
  let cutsLeft = 200;
  const cutTimer = setInterval(() => cutsLeft-- > 0 && proxy.cutOne(), 5);
  cleanups.push(() => clearInterval(cutTimer));
  await write(lines);
  const finished = await Promise.all(readers);
  clearInterval(cutTimer);
  const expected = Array.from({ length: lines }, (_, index) => `line ${index}\n`).join("");
  for (const { events } of finished) {
    expect(events.map((event) => event.seq)).toEqual(events.map((_, index) => index + 1));
    expect(events.map((event) => (event.event.type === "output" ? event.event.text : "")).join("") === expected).toBe(
      true,
    );
    expect(events.at(-1)?.event.type).toBe("result");
  }
  expect(finished.reduce((sum, one) => sum + one.cuts, 0)).toBeGreaterThan(20);
});

test("following a finished run returns its log and ends, and nothing follows its last event", async () => {
  const { coordinator, write, run_id } = await createRunningRun();
  await write(10);
  const all: StoredEvent[] = [];
  for await (const event of coordinator.client.runs.follow(run_id)) all.push(event);
  const last = all.at(-1)!;
  expect(last.event).toMatchObject({ type: "result", status: "completed" });
  for await (const event of coordinator.client.runs.follow(run_id, { after: last.seq })) expect(event).toBeUndefined();
  const pages = await coordinator.client.runs.events(run_id, { limit: 3 });
  expect(pages.next_cursor).toBe(3);
  expect(pages.items.map((event) => event.seq)).toEqual([1, 2, 3]);
});

test("refuses to follow an unknown run instead of waiting for it", async () => {
  const coordinator = await startTestCoordinator();
  cleanups.push(() => coordinator.dispose());
  const first = coordinator.client.runs.follow("0190aaaa-0000-7000-8000-000000000001").next();
  await expect(first).rejects.toMatchObject({ code: "DROVER-API-014" });
});

test("the feed of all runs can be aborted at any time", async () => {
  const { coordinator, write, run_id } = await createRunningRun();
  const abort = new AbortController();
  const seen: StoredEvent[] = [];
  const following = (async () => {
    for await (const event of coordinator.client.follow({ signal: abort.signal })) {
      seen.push(event);
      if (event.event.type === "result") abort.abort();
    }
  })();
  await write(100);
  await following;
  expect(seen.every((event) => event.run_id === run_id)).toBe(true);
  const cursors = seen.map((event) => event.cursor);
  expect(cursors).toEqual([...cursors].sort((a, b) => a - b));
});

test.each(["aborted", "silent"])("a stream that is %s ends even after garbage collection", async (how) => {
  const quiet = createHttpServer((_request, answer) => void answer.writeHead(200).write(": nothing more\n\n"));
  await new Promise<void>((resolve) => void quiet.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => {
    quiet.closeAllConnections();
    quiet.close();
  });
  // The address of a TCP server is never a string.
  const url = `http://127.0.0.1:${(quiet.address() as AddressInfo).port}`;
  const abort = new AbortController();
  let reconnects = 0;
  const following = (async () => {
    const onReconnect = () => {
      reconnects += 1;
      abort.abort();
    };
    const silenceMs = how === "silent" ? 5000 : 600_000;
    for await (const event of createClient({ url, token: null }).follow({
      signal: abort.signal,
      silenceMs,
      onReconnect,
    }))
      expect(event).toBeUndefined();
  })();
  await expect.poll(() => new Promise((resolve) => quiet.getConnections((_, count) => resolve(count)))).toBe(1);
  setFlagsFromString("--expose-gc");
  // A context created after setting the flag has gc.
  const collectGarbage = runInNewContext("gc") as () => void;
  for (let times = 0; times < 10; times += 1) {
    collectGarbage();
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (how === "aborted") abort.abort();
  await following;
  expect(reconnects).toBe(how === "silent" ? 1 : 0);
});

/** Creates a claimed run. `write` adds that many lines to its log and finishes it. */
async function createRunningRun(publicUrls: string[] = []) {
  const coordinator = await startTestCoordinator({ leaseMs: 600_000, publicUrls });
  cleanups.push(async () => {
    await coordinator.dispose();
    expect(coordinator.defects).toEqual([]);
  });
  const { client, port } = coordinator;
  await client.agents.put("worker", { command: "true" });
  const { runner_id, epoch } = await port.register(registration("key-a"));
  const { run_id } = await client.submit({ agent_name: "worker" });
  const { claims } = await port.poll(
    { runner_id, epoch, claim_id: "c1", want: 1, ack_order: 0 },
    AbortSignal.timeout(60_000),
  );
  const attempt = claims[0]!.attempt;
  const base = { runner_id, epoch, held: [[run_id, attempt]] as [string, number][], as_of_claim: "c1", partials: [] };
  const write = async (lines: number) => {
    let n = 0;
    for (let offset = 0; offset < lines; offset += 100) {
      const events = Array.from({ length: Math.min(10, Math.ceil((lines - offset) / 10)) }, (_, index) => {
        const from = offset + index * 10;
        const text = Array.from({ length: Math.min(10, lines - from) }, (_one, line) => `line ${from + line}\n`).join(
          "",
        );
        n += 1;
        return { n, at: new Date().toISOString(), event: { type: "output", stream: "stdout", text } as const };
      });
      await (port satisfies RunnerPort).report({ ...base, events: [{ run_id, attempt, events }], finishes: [] });
    }
    await port.report({
      ...base,
      events: [],
      finishes: [{ run_id, attempt, last_n: n, outcome: { status: "completed", exit_code: 0, text: null } }],
    });
  };
  return { coordinator, run_id, write };
}

/** Starts a proxy that can close a random connection at any point. */
async function startCuttingProxy(targetUrl: string, listenPort: number) {
  const { hostname, port } = new URL(targetUrl);
  const open = new Set<Socket>();
  const server = createServer((clientSocket) => {
    const coordinatorSocket = connect(Number(port), hostname);
    open.add(clientSocket);
    clientSocket
      .on("error", () => coordinatorSocket.destroy())
      .on("close", () => {
        open.delete(clientSocket);
        coordinatorSocket.destroy();
      });
    coordinatorSocket.on("error", () => clientSocket.destroy()).on("close", () => clientSocket.destroy());
    clientSocket.pipe(coordinatorSocket).pipe(clientSocket);
  });
  await new Promise<void>((resolve) => void server.listen(listenPort, "127.0.0.1", resolve));
  cleanups.push(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${listenPort}`,
    cutOne() {
      const all = [...open];
      all[Math.floor(Math.random() * all.length)]?.destroy();
    },
  };
}
