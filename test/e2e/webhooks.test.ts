import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { announcementFile, recordDirectory, tokenFile } from "../../src/model/state-layout.ts";
import type { Run } from "../../src/model/run.ts";
import { createClient } from "../../src/wire/client.ts";
import { startReceiver } from "../fixtures/trigger/receiver.ts";
import { reservePort } from "../reserve-port.ts";
import { bin, folder, homeFolder, root, trusted } from "./drover.ts";
import { startDrover } from "./start-drover.ts";

const patience = { timeout: 180_000, interval: 200 };

/** The page's blocks in their order; one whose first line names a file is that file. */
function blocksOf(page: string): { language: string; file: string | null; text: string }[] {
  return [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = "", text = ""]) => ({
    language,
    file: /^# ([\w./-]+\.(?:yaml|sh))/.exec(text)?.[1] ?? null,
    text,
  }));
}

function bash(script: string, args: readonly string[], options: { cwd: string; env: object; input?: string }) {
  const child = spawn("bash", ["-euo", "pipefail", "-c", script, "bash", ...args], {
    cwd: options.cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: homeFolder(), DROVER_TRUST: trusted, ...options.env },
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (said += chunk.toString("utf8")));
  child.stdin.end(options.input ?? "");
  return new Promise<{ code: number | null; said: string }>((resolve) => {
    child.once("close", (code) => resolve({ code, said }));
  });
}

test("every command and file of docs/webhooks.md does what the page says", async () => {
  const receiver = await startReceiver();
  const cwd = folder();
  const state = join(cwd, "state");
  const blocks = blocksOf(readFileSync(join(root, "docs", "webhooks.md"), "utf8"));
  for (const { file, text } of blocks) {
    if (file === null) continue;
    mkdirSync(dirname(join(cwd, file)), { recursive: true });
    writeFileSync(join(cwd, file), text);
  }
  const env = { DROVER_STATE_DIR: state };
  const up = await startDrover(["up", "--port", "0", "-x", "procedural"], { cwd, env, ready: /http:\/\/\S+\/ui\// });
  const announcement = JSON.parse(readFileSync(announcementFile(recordDirectory(state)), "utf8")) as { url: string };
  const token = readFileSync(tokenFile(recordDirectory(state), "token"), "utf8").trim();
  const client = createClient({ url: announcement.url, token });
  const commands = blocks.filter(({ language, file }) => language === "sh" && file === null).map(({ text }) => text);
  expect(commands.length).toBeGreaterThanOrEqual(6);
  const secret = "a-secret-that-the-page-does-not-have";
  const script = [`drover() { "${process.execPath}" "${bin}" "$@"; }`, ...commands].join("\n");
  const ran = await bash(script, [], { cwd, env: { ...env, DROVER: announcement.url, CHAT_URL: receiver.url } });
  expect(ran.code, ran.said).toBe(0);

  const review = (await client.runs.list({ agent_name: "review" })).items;
  expect(review, ran.said).toHaveLength(1);
  expect(await client.runs.get(review[0]!.run_id)).toMatchObject({
    trigger_type: "webhook",
    parameters: { repository: "you/project", number: 7 },
    prompt: "Review pull request 7 of you/project: Fix the door",
  });
  const nightly = () => client.runs.list({ agent_name: "nightly" });
  expect((await nightly()).items.map(({ trigger_type }) => trigger_type).toSorted()).toEqual(["api", "webhook"]);
  await expect
    .poll(async () => (await client.webhooks.deliveries({ status: "delivered" })).items.length, patience)
    .toBe(2);
  const texts = receiver.requests.map(({ body }) => (JSON.parse(body) as { text: string }).text);
  expect(new Set(texts)).toEqual(new Set([expect.stringMatching(/^nightly failed \(exit_nonzero\): /)]));

  const [change] = (await client.runs.list({ agent_name: "change" })).items;
  const children = async () => (await client.runs.list({ parent_run_id: change!.run_id })).items;
  await expect.poll(async () => (await children()).map(({ status }) => status), patience).toEqual(["completed"]);
  expect(await client.runs.get((await children())[0]!.run_id)).toMatchObject({
    agent_name: "look-at",
    parameters: { file: "door.ts", style: "strict" },
  });

  await client.webhooks.change("chat", { secret });
  await client.webhooks.redeliver((await client.webhooks.deliveries()).items[0]!.delivery_id);
  const sent = receiver.requests.length;
  await expect.poll(() => receiver.requests.length, patience).toBeGreaterThan(sent);
  const { body, headers } = receiver.requests.at(-1)!;
  const verify = readFileSync(join(cwd, "verify.sh"), "utf8");
  const signature = String(headers["drover-signature"]);
  expect(await bash(verify, [secret, signature], { cwd, env, input: body })).toMatchObject({ code: 0 });
  expect((await bash(verify, [secret, signature], { cwd, env, input: `${body} ` })).code).not.toBe(0);
  expect((await bash(verify, [`${secret}x`, signature], { cwd, env, input: body })).code).not.toBe(0);
  await up.end("SIGTERM");
  await receiver.close();
});

test("coordinators killed around the ends of runs lose and double neither what follows nor what is sent", async () => {
  const receiver = await startReceiver();
  const cwd = folder();
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
  for (let at = 0; at < 12; at += 1) runs.push((await client.submit({ agent_name: "work" })).run_id);
  for (const least of [2, 5, 9]) {
    const ended = async () => (await client.runs.list({ agent_name: "work", status: ["completed"] })).items.length;
    await expect.poll(ended, patience).toBeGreaterThanOrEqual(least);
    await current.end("SIGKILL");
    current = await coordinator();
  }
  await expect
    .poll(async () => (await client.runs.list({ agent_name: "after", status: ["completed"] })).items.length, patience)
    .toBe(runs.length);
  const after = (await client.runs.list({ agent_name: "after" })).items;
  expect(after.map(({ parent_run_id }) => parent_run_id).toSorted()).toEqual(runs.toSorted());
  const all = [...runs, ...after.map(({ run_id }) => run_id)].toSorted();
  const delivered = async () =>
    (await client.webhooks.deliveries({ status: "delivered", limit: 1000 })).items.map(({ run_id }) => run_id);
  await expect.poll(async () => (await delivered()).toSorted(), patience).toEqual(all);
  expect((await client.webhooks.deliveries({ limit: 1000 })).items).toHaveLength(all.length);
  const told = receiver.requests.map(({ body }) => (JSON.parse(body) as { run: Run }).run.run_id);
  expect([...new Set(told)].toSorted()).toEqual(all);
  await receiver.close();
});

test("a delivery under way when its coordinator is killed is sent again, under the same id", async () => {
  const receiver = await startReceiver(() => undefined);
  const cwd = folder();
  const env = { DROVER_STATE_DIR: join(cwd, "state") };
  mkdirSync(join(cwd, "agents"));
  writeFileSync(join(cwd, "agents/work.json"), JSON.stringify({ name: "work", command: "true" }));
  writeFileSync(join(cwd, "drover.yaml"), "webhooks: { allow: [127.0.0.1] }\n");
  const start = async () => {
    const process = await startDrover(["coordinator", "--port", "0"], { cwd, env, ready: /^Serving /m });
    const url = /^Serving (\S+)/m.exec(process.said)![1]!;
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
