import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { readSse } from "../wire/sse.ts";

let coordinator: TestCoordinator;
beforeAll(async () => {
  coordinator = await startTestCoordinator();
  await coordinator.client.agents.put("quiet", { command: "true" });
});
afterAll(async () => {
  expect(coordinator.defects).toEqual([]);
  await coordinator.dispose();
});

test("an event stream sends the partial output of the runs it follows, and the set of runs can be changed", async () => {
  const [one, two] = [await submit(), await submit()];
  const { token: ann } = await coordinator.client.tokens.create({ role: "user", subject: "ann" });
  const adminStream = await follow(coordinator.adminToken, `follow=${one}&stream=s`);
  const annStream = await follow(ann, `follow=${one}&stream=s`);
  sendPartial(one, "first");
  sendPartial(two, "nobody follows it");
  await expect.poll(() => adminStream.received).toEqual(["first"]);
  expect(await setFollowedRuns("s", [two])).toBe(204);
  sendPartial(one, "no longer followed");
  sendPartial(two, "second");
  await expect.poll(() => adminStream.received).toEqual(["first", "second"]);
  // Another caller can neither change this stream nor follow these runs.
  expect(await setFollowedRuns("other", [two])).toBe(404);
  expect(await setFollowedRuns("s", [one], ann)).toBe(204);
  sendPartial(one, "of another user");
  const annRun = await submit(ann);
  expect(await setFollowedRuns("s", [annRun], ann)).toBe(204);
  sendPartial(annRun, "ann's own");
  await expect.poll(() => annStream.received).toEqual(["ann's own"]);
  expect(adminStream.received).toEqual(["first", "second"]);
  adminStream.stop();
  annStream.stop();
});

async function submit(token = coordinator.adminToken): Promise<string> {
  const response = await fetch(`${coordinator.url}/runs`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ agent_name: "quiet" }),
  });
  return ((await response.json()) as { run_id: string }).run_id;
}

function sendPartial(run_id: string, text: string): void {
  const partial = { run_id, attempt: 1, delta: { kind: "assistant", text } };
  coordinator.hub.sendLive(run_id, `event: partial\ndata: ${JSON.stringify(partial)}\n\n`);
}

async function setFollowedRuns(stream: string, runs: string[], token = coordinator.adminToken): Promise<number> {
  const response = await fetch(`${coordinator.url}/events/follow`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ stream, follow: runs }),
  });
  return response.status;
}

async function follow(token: string, query: string): Promise<{ received: string[]; stop(): void }> {
  const abort = new AbortController();
  const response = await fetch(`${coordinator.url}/events?${query}`, {
    headers: { authorization: `Bearer ${token}`, accept: "text/event-stream" },
    signal: abort.signal,
  });
  expect(response.status).toBe(200);
  const received: string[] = [];
  void (async () => {
    for await (const { event, data } of readSse(response.body!))
      if (event === "partial") received.push(JSON.parse(data).delta.text);
  })().catch(() => undefined);
  return { received, stop: () => abort.abort() };
}
