import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { describeContract } from "../../test/contract/contract.ts";
import { runnerPortContract } from "../../test/contract/runner-port.ts";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { createProvingListener } from "../../test/proving.ts";
import { createHttpPort, type HttpPort } from "./http-port.ts";

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

describeContract("runner port over HTTP", runnerPortContract, async () => {
  const { coordinator, port } = await setUp();
  const { client } = coordinator;
  await client.agents.put("worker", { command: "true" });
  await client.agents.put("chat", { type: "autonomous", executor: "procedural" });
  return {
    port,
    register: (runner_key) => port.register(registration(runner_key)),
    submit: async (attended = false) =>
      (await client.submit(attended ? { agent_name: "chat", attended, prompt: "go" } : { agent_name: "worker" }))
        .run_id,
    answer: async (run_id, request_id, answer) => void (await client.questions.answer(run_id, request_id, answer)),
    input: (run_id, text) => client.runs.input(run_id, text),
    stop: async (run_id) => void (await client.runs.stop(run_id)),
    run: (run_id) => client.runs.get(run_id),
    seqs: async (run_id) => (await client.runs.events(run_id, { limit: 1000 })).items.map((event) => event.seq),
  };
});

test("a stopped or silent coordinator is away, and another server is unproven", async () => {
  const { coordinator, port } = await setUp();
  await port.register(registration("key-a"));
  await coordinator.stop();
  await expect(port.register(registration("key-a"))).rejects.toMatchObject({ name: "PortError", conflict: "away" });
  for (const [status, conflict] of [
    ["never", "away"],
    [502, "away"],
    [200, "unproven"],
  ] as const) {
    const otherServer = createServer((_request, response) => {
      if (status !== "never") response.writeHead(status, { "content-type": "text/html" }).end("<h1>proxy</h1>");
    });
    await new Promise<void>((resolve) => void otherServer.listen(0, "127.0.0.1", resolve));
    // The address of a TCP server is never a string.
    const url = `http://127.0.0.1:${(otherServer.address() as AddressInfo).port}`;
    const other = createHttpPort({ url, token: "drv_x", timeoutMs: status === "never" ? 200 : 60_000 });
    await expect(other.register(registration("key-a"))).rejects.toMatchObject({ conflict });
    other.close();
    otherServer.closeAllConnections();
    otherServer.close();
  }
});

test("a report without a response leaves time for another within the lease", async () => {
  const requestedPaths: string[] = [];
  const hangingServer = createServer(
    createProvingListener("drv_x", (request, response) => {
      requestedPaths.push(request.url ?? "");
      if (request.url !== "/runner/register") return;
      response.writeHead(200).end(JSON.stringify({ runner_id: "r", epoch: 1, lease_ms: 2000 }));
    }),
  );
  await new Promise<void>((resolve) => void hangingServer.listen(0, "127.0.0.1", resolve));
  // The address of a TCP server is never a string.
  const url = `http://127.0.0.1:${(hangingServer.address() as AddressInfo).port}`;
  const port = createHttpPort({ url, token: "drv_x", timeoutMs: 3_600_000 });
  const { runner_id, epoch } = await port.register(registration("key-a"));
  const report = { runner_id, epoch, held: [], as_of_claim: null, events: [], partials: [], finishes: [] };
  await expect(port.report(report)).rejects.toMatchObject({ conflict: "away" });
  expect(requestedPaths).toEqual(["/runner/register", "/runner/report"]);
  port.close();
  hangingServer.closeAllConnections();
  hangingServer.close();
});

test("distinguishes an unknown runner, an old epoch, a duplicate and a bad token", async () => {
  const { coordinator, port } = await setUp();
  const report = { held: [], as_of_claim: null, events: [], partials: [], finishes: [] };
  await expect(port.report({ runner_id: "nobody", epoch: 1, ...report })).rejects.toMatchObject({
    conflict: "unknown_runner",
  });
  const old = await port.register(registration("key-a"));
  await port.register(registration("key-a"));
  await expect(port.report({ runner_id: old.runner_id, epoch: old.epoch, ...report })).rejects.toMatchObject({
    conflict: "old_epoch",
  });
  await expect(port.register(registration("key-b"))).rejects.toMatchObject({ conflict: "duplicate_runner" });
  const portWithGuess = createHttpPort({ url: coordinator.url, token: "drv_guessed" });
  await expect(portWithGuess.register(registration("key-c"))).rejects.toMatchObject({ conflict: "unproven" });
  portWithGuess.close();
  const viewer = await coordinator.client.tokens.create({ role: "viewer", subject: "eye" });
  const viewerPort = createHttpPort({ url: coordinator.url, token: viewer.token });
  await expect(viewerPort.register(registration("key-c"))).rejects.toMatchObject({ conflict: "unauthorized" });
  viewerPort.close();
  const wrong = { ...registration("key-d"), slots: 0 };
  await expect(port.register(wrong)).rejects.toMatchObject({
    conflict: "refused",
    message: expect.stringContaining("body.slots"),
  });
});

test("cancelling a poll ends it at once on both sides", async () => {
  const { coordinator, port } = await setUp({ pollHoldMs: 60_000 });
  const { runner_id, epoch } = await port.register(registration("key-a"));
  const polled = port.poll({ runner_id, epoch, claim_id: "c1", want: 1, ack_order: 0 }, AbortSignal.timeout(100));
  await expect(polled).rejects.toMatchObject({ conflict: "away" });
  // If the coordinator still held it, stopping would take the whole grace period.
  await coordinator.stop();
});

test("many concurrent calls leak no listeners", async () => {
  const { port } = await setUp();
  const warnings: string[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning.message);
  process.on("warning", onWarning);
  try {
    const runners = await Promise.all(
      Array.from({ length: 15 }, (_, index) => port.register(registration(`key-${index}`, `/srv/${index}`))),
    );
    await Promise.all(runners.map(({ runner_id, epoch }) => port.deregister({ runner_id, epoch })));
    // Warnings are emitted in the next turn.
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off("warning", onWarning);
  }
  expect(warnings).toEqual([]);
});

test("gives up on a silent poll, but waits for one that sends keepalives", async () => {
  const silent = await startFakeCoordinator({ poll_silence_ms: 300 }, () => undefined);
  await expect(silent.poll()).rejects.toMatchObject({
    conflict: "away",
    message: expect.stringContaining("no data for 300 ms"),
  });

  const alive = await startFakeCoordinator({ poll_silence_ms: 5000 }, (response) => {
    let keepalives = 0;
    const timer = setInterval(() => {
      keepalives += 1;
      if (keepalives < 8) return void response.write("\n");
      clearInterval(timer);
      response.end(JSON.stringify(nothing));
    }, 1000);
  });
  expect(await alive.poll()).toEqual(nothing);

  const stalled = await startFakeCoordinator({ poll_silence_ms: 300 }, (response) => void response.write("\n"));
  const cause = expect.objectContaining({ message: "no data for 300 ms" });
  await expect(stalled.poll()).rejects.toMatchObject({ conflict: "away", cause });
});

test("waits for a silent older coordinator, which sends no keepalives", async () => {
  const older = await startFakeCoordinator({}, (response) => {
    setTimeout(() => response.end(JSON.stringify(nothing)), 600);
  });
  expect(await older.poll()).toEqual(nothing);
});

test("asks for the longest hold, unless the coordinator knows none, sends no keepalives, or the runner is short of something", async () => {
  const readSentPoll = async (registered: Registered, changes: object = {}) => {
    const fake = await startFakeCoordinator(registered, (response) => response.end(JSON.stringify(nothing)));
    await fake.poll(changes);
    return fake.bodies().at(-1);
  };
  const long = { poll_silence_ms: 5000, max_hold_ms: 600_000 };
  expect(await readSentPoll(long)).toEqual({ ...request, hold_ms: 600_000 });
  expect(await readSentPoll({ poll_silence_ms: 5000 })).toEqual(request);
  expect(await readSentPoll({ max_hold_ms: 600_000 })).toEqual(request);
  expect(await readSentPoll(long, { want: 0 })).toEqual({ ...request, want: 0 });
  expect(await readSentPoll(long, { shortage: "descriptors" })).toEqual({ ...request, shortage: "descriptors" });
});

test("asks for no long hold after two long polls were cut off in a row, or where the field is refused", async () => {
  const long = { poll_silence_ms: 5000, max_hold_ms: 600_000 };
  const interruptedPolls = new Set([1, 3, 4]);
  const fake = await startFakeCoordinator(
    long,
    (response, number) => {
      if (!interruptedPolls.has(number)) return void response.end(JSON.stringify(nothing));
      response.write("\n");
      setTimeout(() => response.destroy(), 50);
    },
    { pollHoldMs: 1 },
  );
  const polls = [];
  for (let number = 1; number <= 5; number += 1)
    polls.push(
      await fake.poll().then(
        () => "response",
        () => "interrupted",
      ),
    );
  expect(polls).toEqual(["interrupted", "response", "interrupted", "interrupted", "response"]);
  expect(fake.bodies().map((body) => "hold_ms" in body)).toEqual([true, true, true, true, false]);

  const older = await startFakeCoordinator(long, (response, number) => {
    const problem = { title: "", code: "DROVER-API-006", detail: "body.hold_ms: unknown field", faults: [] };
    if (number > 1) return void response.end(JSON.stringify(nothing));
    response.writeHead(400, { "content-type": "application/problem+json" }).end(JSON.stringify(problem));
  });
  await expect(older.poll()).rejects.toMatchObject({ conflict: "refused" });
  expect(await older.pollAgain()).toEqual(nothing);
  expect(older.bodies().map((body) => "hold_ms" in body)).toEqual([true, false]);
});

test("opens a new connection after a 503 or no response", async () => {
  for (const fault of [503, "silent"] as const) {
    const fake = await startFakeCoordinator({}, (response, poll) => {
      if (poll === 1 && fault === "silent") return;
      response.writeHead(poll === 1 ? 503 : 200).end(JSON.stringify(nothing));
    });
    // The port adds 10 s to the hold, so this poll times out after 500 ms.
    const port = createHttpPort({ url: fake.url, token: "drv_x", pollHoldMs: -9500 });
    cleanups.push(() => port.close());
    // Two at once, so there is another connection besides the failing one.
    await Promise.all([port.register(registration("key-a")), port.register(registration("key-b"))]);
    expect(fake.connections()).toBe(2);
    await port.register(registration("key-a"));
    expect(fake.connections()).toBe(2);
    await expect(port.poll(request, neverAborted)).rejects.toMatchObject({ conflict: "away" });
    await port.poll(request, neverAborted);
    expect(fake.connections()).toBe(3);
    await port.poll(request, neverAborted);
    expect(fake.connections()).toBe(3);
  }
});

const nothing = { claims: [], orders: [] };
const neverAborted = new AbortController().signal;
const request = { runner_id: "r", epoch: 1, claim_id: "c1", want: 1, ack_order: 0 };

interface Registered {
  poll_silence_ms?: number;
  max_hold_ms?: number;
}

/** Starts a fake coordinator that registers every runner and handles polls with `onPoll`. */
async function startFakeCoordinator(
  registered: Registered,
  onPoll: (response: ServerResponse, number: number) => void,
  options: { pollHoldMs?: number } = {},
) {
  let connections = 0;
  const bodies: object[] = [];
  let polls = 0;
  const server = createServer(
    createProvingListener("drv_x", (incoming, response) => {
      if (incoming.url === "/runner/poll") {
        let text = "";
        incoming.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        incoming.on("end", () => {
          bodies.push(JSON.parse(text));
          onPoll(response, (polls += 1));
        });
        return;
      }
      response.end(JSON.stringify({ runner_id: "r", epoch: 1, lease_ms: 2000, ...registered }));
    }),
  );
  server.on("connection", () => (connections += 1));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  // The address of a TCP server is never a string.
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const port = createHttpPort({ url, token: "drv_x", ...options });
  cleanups.push(() => {
    port.close();
    server.closeAllConnections();
    server.close();
  });
  return {
    url,
    connections: () => connections,
    /** The bodies of the polls. */
    bodies: () => bodies,
    async poll(changes: object = {}) {
      await port.register(registration("key-a"));
      return port.poll({ ...request, ...changes }, neverAborted);
    },
    pollAgain: () => port.poll(request, neverAborted),
  };
}

async function setUp(options: { pollHoldMs?: number } = {}): Promise<{ coordinator: TestCoordinator; port: HttpPort }> {
  // Long enough that no runner is lost on a busy machine.
  const coordinator = await startTestCoordinator({ leaseMs: 300_000, ...options });
  const { token } = await coordinator.client.tokens.create({ role: "runner", subject: "box" });
  const port = createHttpPort({ url: coordinator.url, token });
  cleanups.push(async () => {
    port.close();
    await coordinator.dispose();
    expect(coordinator.defects).toEqual([]);
  });
  return { coordinator, port };
}
