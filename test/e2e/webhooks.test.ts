import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { recordDirectory, tokenFile } from "../../src/model/state-layout.ts";
import type { Run } from "../../src/model/run.ts";
import { createClient } from "../../src/wire/client.ts";
import { startReceiver } from "../fixtures/trigger/receiver.ts";
import { reservePort } from "../reserve-port.ts";
import { createDirectory } from "./drover.ts";
import { startDrover } from "./start-drover.ts";

const patience = { timeout: 180_000, interval: 200 };

test("coordinators killed around the ends of runs lose or repeat neither chains nor deliveries", async () => {
  const receiver = await startReceiver();
  const cwd = createDirectory();
  const env = { DROVER_STATE_DIR: join(cwd, "state") };
  mkdirSync(join(cwd, "agents"));
  const on_finish = { agent: "after", when: "always" };
  writeFileSync(join(cwd, "agents/work.json"), JSON.stringify({ name: "work", command: "sleep 0.2", on_finish }));
  writeFileSync(join(cwd, "agents/after.json"), JSON.stringify({ name: "after", command: "true" }));
  writeFileSync(join(cwd, "drover.yaml"), "webhooks: { allow: [127.0.0.1] }\n");
  const port = await reservePort();
  const coordinator = () => startDrover(["coordinator", "--port", String(port)], { cwd, env, ready: /^Serving /m });
  let current = await coordinator();
  const token = readFileSync(tokenFile(recordDirectory(join(cwd, "state")), "token"), "utf8").trim();
  const url = `http://127.0.0.1:${port}`;
  const client = createClient({ url, token });
  const runnerEnv = { DROVER_STATE_DIR: join(cwd, "runner"), DROVER_API_URL: url, DROVER_API_KEY: token };
  await startDrover(["runner", "-x", "procedural"], { cwd, env: runnerEnv, ready: /^Offers /m });
  await client.webhooks.add({ name: "all", url: receiver.url });
  const runs: string[] = [];
  for (let index = 0; index < 12; index += 1) runs.push((await client.submit({ agent_name: "work" })).run_id);
  for (const least of [2, 5, 9]) {
    const countEnded = async () => (await client.runs.list({ agent_name: "work", status: ["completed"] })).items.length;
    await expect.poll(countEnded, patience).toBeGreaterThanOrEqual(least);
    await current.end("SIGKILL");
    current = await coordinator();
  }
  await expect
    .poll(async () => (await client.runs.list({ agent_name: "after", status: ["completed"] })).items.length, patience)
    .toBe(runs.length);
  const afterRuns = (await client.runs.list({ agent_name: "after" })).items;
  expect(afterRuns.map(({ parent_run_id }) => parent_run_id).toSorted()).toEqual(runs.toSorted());
  const runIds = [...runs, ...afterRuns.map(({ run_id }) => run_id)].toSorted();
  const delivered = async () =>
    (await client.webhooks.deliveries({ status: "delivered", limit: 1000 })).items.map(({ run_id }) => run_id);
  await expect.poll(async () => (await delivered()).toSorted(), patience).toEqual(runIds);
  expect((await client.webhooks.deliveries({ limit: 1000 })).items).toHaveLength(runIds.length);
  const notified = receiver.requests.map(({ body }) => (JSON.parse(body) as { run: Run }).run.run_id);
  expect([...new Set(notified)].toSorted()).toEqual(runIds);
  await receiver.close();
});

test("a delivery interrupted by a kill of its coordinator is sent again with the same id", async () => {
  const receiver = await startReceiver(() => undefined);
  const cwd = createDirectory();
  const env = { DROVER_STATE_DIR: join(cwd, "state") };
  mkdirSync(join(cwd, "agents"));
  writeFileSync(join(cwd, "agents/work.json"), JSON.stringify({ name: "work", command: "true" }));
  writeFileSync(join(cwd, "drover.yaml"), "webhooks: { allow: [127.0.0.1] }\n");
  const start = async () => {
    const process = await startDrover(["coordinator", "--port", "0"], { cwd, env, ready: /^Serving /m });
    const url = /^Serving (\S+)/m.exec(process.output)![1]!;
    const token = readFileSync(tokenFile(recordDirectory(join(cwd, "state")), "token"), "utf8").trim();
    return { process, client: createClient({ url, token }) };
  };
  const first = await start();
  await first.client.webhooks.add({ name: "all", url: receiver.url, events: ["cancelled"] });
  const { run_id } = await first.client.submit({ agent_name: "work" });
  await first.client.runs.stop(run_id);
  await expect.poll(() => receiver.requests.length, patience).toBe(1);
  await first.process.end("SIGKILL");
  receiver.answer((_, response) => void response.end());
  const second = await start();
  await expect
    .poll(async () => (await second.client.webhooks.deliveries()).items[0]?.status, patience)
    .toBe("delivered");
  expect(new Set(receiver.requests.map(({ headers }) => headers["drover-delivery"])).size).toBe(1);
  expect(receiver.requests.length).toBeGreaterThanOrEqual(2);
  await receiver.close();
});
