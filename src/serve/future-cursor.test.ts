import { randomBytes } from "node:crypto";
import { request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";

let database: FreshDatabase;
let coordinator: TestCoordinator;

// Uses PostgreSQL: with SQLite, a reader that never pauses would block this process forever.
beforeAll(async () => {
  database = await freshDatabase();
  coordinator = await startTestCoordinator({ database: { url: database.url, secret: randomBytes(32) } });
  await coordinator.client.agents.put("agent", { command: "true" });
});
afterAll(async () => {
  expect(coordinator.defects).toEqual([]);
  await coordinator.dispose();
  await database.drop();
});

test("a stream from a future cursor delivers new events and does not disturb other streams", async () => {
  const { client } = coordinator;
  const { run_id } = await client.submit({ agent_name: "agent" });
  const streams = ["/events", `/runs/${run_id}/events`].map((path) => {
    const fromFuture = follow(path, "900000000");
    return { fromFuture, ordinary: follow(path) };
  });
  for (const { ordinary } of streams) await expect.poll(() => ordinary.text()).toContain('"status":"pending"');
  await client.runs.stop(run_id);
  for (const { fromFuture, ordinary } of streams)
    for (const item of [fromFuture, ordinary]) {
      await expect.poll(() => item.text()).toContain('"status":"cancelled"');
      item.disconnect();
    }
  expect(await client.health()).toMatchObject({ status: "ok" });
});

function follow(path: string, after?: string) {
  let text = "";
  const headers = {
    authorization: `Bearer ${coordinator.adminToken}`,
    accept: "text/event-stream",
    ...(after === undefined ? {} : { "last-event-id": after }),
  };
  const clientRequest = request(`${coordinator.url}${path}`, { headers, agent: false }, (response) => {
    response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    // The test disconnects in the end.
    response.on("error", () => undefined);
  });
  clientRequest.on("error", () => undefined).end();
  return { text: () => text, disconnect: () => void clientRequest.destroy() };
}
