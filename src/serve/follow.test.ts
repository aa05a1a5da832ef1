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

test("an event stream carries the partials of the runs it follows, and the set can be changed", async () => {
  const [one, two] = [await submit(), await submit()];
  const { token: ann } = await coordinator.client.tokens.create({ role: "user", subject: "ann" });
  const admins = await follow(coordinator.adminToken, `follow=${one}&stream=s`);
  const anns = await follow(ann, `follow=${one}&stream=s`);
  speak(one, "first");
  speak(two, "nobody follows it");
  await expect.poll(() => admins.heard).toEqual(["first"]);
  expect(await setPartials("s", [two])).toBe(204);
  speak(one, "no longer followed");
  speak(two, "second");
  await expect.poll(() => admins.heard).toEqual(["first", "second"]);
  // Another caller can change neither this stream nor follow these runs.
  expect(await setPartials("other", [two])).toBe(404);
  expect(await setPartials("s", [one], ann)).toBe(204);
  speak(one, "somebody else's");
  const own = await submit(ann);
  expect(await setPartials("s", [own], ann)).toBe(204);
  speak(own, "ann's own");
  await expect.poll(() => anns.heard).toEqual(["ann's own"]);
  expect(admins.heard).toEqual(["first", "second"]);
  admins.stop();
  anns.stop();
});

async function submit(token = coordinator.adminToken): Promise<string> {
  const answer = await fetch(`${coordinator.url}/runs`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ agent_name: "quiet" }),
  });
  return ((await answer.json()) as { run_id: string }).run_id;
}

function speak(run_id: string, text: string): void {
  const partial = { run_id, attempt: 1, delta: { kind: "assistant", text } };
  coordinator.hub.sendLive(run_id, `event: partial\ndata: ${JSON.stringify(partial)}\n\n`);
}

async function setPartials(stream: string, runs: string[], token = coordinator.adminToken): Promise<number> {
  const answer = await fetch(`${coordinator.url}/events/follow`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ stream, follow: runs }),
  });
  return answer.status;
}

async function follow(token: string, query: string): Promise<{ heard: string[]; stop(): void }> {
  const ending = new AbortController();
  const answer = await fetch(`${coordinator.url}/events?${query}`, {
    headers: { authorization: `Bearer ${token}`, accept: "text/event-stream" },
    signal: ending.signal,
  });
  expect(answer.status).toBe(200);
  const heard: string[] = [];
  void (async () => {
    for await (const { event, data } of readSse(answer.body!))
      if (event === "partial") heard.push(JSON.parse(data).delta.text);
  })().catch(() => undefined);
  return { heard, stop: () => ending.abort() };
}
