import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { type ClaimedRun, claimOverHttp } from "../../test/fixtures/dispatch/claimed.ts";
import type { StoredEvent } from "../model/event.ts";
import { createLocalClient } from "../compose/open-coordinator.ts";
import type { ApiClient } from "../wire/client.ts";
import { checkByContract } from "./check-by-contract.ts";
import { checkSubmit } from "./check-submit.ts";

let coordinator: TestCoordinator;
let run: ClaimedRun;
let transports: Record<"HTTP" | "this process", ApiClient>;

beforeAll(async () => {
  coordinator = await startTestCoordinator({ leaseMs: 600_000 });
  transports = { HTTP: coordinator.client, "this process": createLocalClient(coordinator, checkByContract) };
  run = await claimOverHttp(coordinator, "transports");
  await run.keep("out/kept.txt", Buffer.from("kept"));
});
afterAll(async () => {
  run.port.close();
  expect(coordinator.defects).toEqual([]);
  await coordinator.dispose();
});

/** Returns the result or the refusal of a call over each transport. */
async function collectOutcomes(
  call: (client: ApiClient) => Promise<unknown>,
  clients = Object.values(transports),
): Promise<unknown[]> {
  return Promise.all(
    clients.map((client) =>
      call(client).then(
        (value) => JSON.parse(JSON.stringify(value ?? null)),
        ({ name, code, message, field, next }) => ({ name, code, message, field, next }),
      ),
    ),
  );
}

test.each<[string, (client: ApiClient) => Promise<unknown>]>([
  ["runs", (client) => client.runs.list({ status: ["running", "claimed"], limit: 5 })],
  ["the default page", (client) => client.runs.list()],
  ["one run", (client) => client.runs.get(run.run_id)],
  ["its events", (client) => client.runs.events(run.run_id, { after: 1, limit: 2 })],
  ["its files", (client) => client.runs.files(run.run_id)],
  ["why it waits", (client) => client.runs.why(run.run_id)],
  ["executions", (client) => client.executions.list({ open: true })],
  ["agents", (client) => client.agents.list()],
  ["sessions", (client) => client.sessions.list()],
  ["drained runners", (client) => client.runners.drain(run.runner.runner_id, false)],
  ["an unknown run", (client) => client.runs.get("0190aaaa-0000-7000-8000-000000000000")],
  ["an unknown agent", (client) => client.submit({ agent_name: "nobody" })],
  ["a bad limit", (client) => client.runs.list({ limit: 0 })],
  ["a batch of refused runs", (client) => client.submitAll([{ agent_name: "nobody" }, { agent_name: "" }])],
  ["a batch of none", (client) => client.submitAll([])],
  ["a bad body", (client) => client.runs.stopMany({})],
  ["a bad cursor", (client) => client.runs.list({ cursor: "x" })],
])("returns the same over HTTP and in process: %s", async (_what, call) => {
  const [http, inProcess] = await collectOutcomes(call);
  expect(inProcess).toEqual(http);
});

test.each<[string, Parameters<ApiClient["submit"]>[0]]>([
  ["an invalid priority", { agent_name: "transports", priority: 1.5 }],
  ["an empty idempotency key", { agent_name: "transports", idempotency_key: "" }],
  ["a timeout that is too long", { agent_name: "transports", timeout_seconds: 1e9 }],
])("a command without a coordinator refuses the same submissions as HTTP: %s", async (_what, request) => {
  const clients = [coordinator.client, createLocalClient(coordinator, checkSubmit)];
  const [http, inProcess] = await collectOutcomes((client) => client.submit(request), clients);
  expect(http).toMatchObject({ code: "DROVER-API-006" });
  expect(inProcess).toEqual(http);
});

test("reads files and follows events in process as over HTTP", async () => {
  const contents = await collectOutcomes(async (client) => {
    const { size, sha256, stream } = await client.runs.file(run.run_id, "out/kept.txt");
    const chunks: Uint8Array[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    return { size, sha256, text: Buffer.concat(chunks).toString() };
  });
  expect(contents[0]).toMatchObject({ size: 4, text: "kept" });
  expect(contents[1]).toEqual(contents[0]);

  const received = new Map<string, string>();
  let followersAtEnd = 0;
  const following = Object.entries(transports).map(async ([name, client]) => {
    const events: StoredEvent[] = [];
    const onPartial = ({ text }: { text: string }): void => void received.set(name, text);
    for await (const event of client.runs.follow(run.run_id, { onPartial })) {
      events.push(event);
      if (event.event.type === "progress" && (followersAtEnd += 1) === 2) void sendTextAndFinish();
    }
    return events;
  });
  /** A follower that has not caught up misses live text, so it is repeated until both have received it. */
  async function sendTextAndFinish(): Promise<void> {
    const { run_id, attempt } = run;
    while (received.size < 2)
      await run.report({ partials: [{ run_id, attempt, delta: { kind: "assistant", text: "soon" } }] });
    await run.finish();
  }
  await run.append({ type: "progress", percent: 50 });
  const [http, inProcess] = await Promise.all(following);
  expect(inProcess).toEqual(http);
  expect(inProcess?.at(-1)?.event.type).toBe("result");
  expect([...received.values()]).toEqual(["soon", "soon"]);
});

test("an aborted call in process ends and removes its follower", async () => {
  const leaving = new AbortController();
  const following = transports["this process"].follow({ signal: leaving.signal });
  const first = await following.next();
  expect(first.done).toBe(false);
  leaving.abort();
  for await (const _ of following) continue;
  expect(coordinator.hub.followers).toBe(0);
});
