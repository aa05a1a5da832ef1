import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { startTestCoordinator } from "../../test/coordinator.ts";
import { runAgent, SessionError } from "../index.ts";
import { openProfiles } from "../compose/open-profiles.ts";
import { startRunner } from "../runner.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).toReversed()) await cleanUp();
});

/** Starts a coordinator with a runner of the executor `model`. */
async function startFleet() {
  const directory = mkdtempSync(join(tmpdir(), "drover-library-"));
  cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
  const coordinator = await startTestCoordinator();
  cleanups.push(coordinator.dispose);
  mkdirSync(join(directory, "profiles"));
  writeFileSync(join(directory, "profiles", "model.json"), JSON.stringify({ type: "model", env_from: [] }));
  const directories = [join(directory, "profiles")];
  const env = { PATH: process.env["PATH"], HOME: directory };
  const opened = await openProfiles({ names: ["model"], directories, env, onNotice: expect.fail });
  cleanups.push(opened.stop);
  const runner = await startRunner({
    port: coordinator.port,
    profiles: opened.profiles,
    stateDirectory: join(directory, "runner"),
    projectDir: directory,
    env,
    maxOutputKb: 1024,
    onNotice: () => undefined,
  });
  cleanups.push(runner.stop);
  return { coordinator, directory, address: { url: coordinator.url, token: coordinator.adminToken } };
}

it("runs an agent through a coordinator, by definition or by name", async () => {
  const { coordinator, address } = await startFleet();
  const agent = { name: "helper", executor: "model", provider: "scripted" };
  const options = { prompt: "Do it", stateDir: "not used", coordinator: address };
  const result = await runAgent({ ...options, agent, triggerType: "webhook" });
  expect(result, String(result.error)).toMatchObject({ success: true, summary: expect.stringContaining("script") });
  expect(await coordinator.client.runs.get(result.jobId)).toMatchObject({
    status: "completed",
    trigger_type: "webhook",
    agent_name: "helper",
  });
  const env = { DROVER_API_URL: address.url, DROVER_API_KEY: address.token };
  const resumed = await runAgent({
    prompt: "Go on",
    stateDir: "not used",
    agent: "helper",
    resume: result.sessionId!,
    coordinator: "environment",
    env,
  });
  expect(resumed, String(resumed.error)).toMatchObject({ success: true, sessionId: result.sessionId });
});

it("refuses an in-process MCP server, which a coordinator's runners cannot reach", async () => {
  const { coordinator, address } = await startFleet();
  const agent = { name: "helper", mcp_servers: { calc: { type: "sdk" as const, name: "calc", instance: {} } } };
  await expect(runAgent({ agent, prompt: "x", stateDir: "s", coordinator: address })).rejects.toMatchObject({
    field: "agent.mcp_servers.calc",
  });
  expect((await coordinator.client.runs.list()).items).toEqual([]);
});

it("rejects with different errors if no coordinator responds and if the agent is unknown", async () => {
  const { address } = await startFleet();
  const options = { agent: "nobody", prompt: "x", stateDir: "s" };
  await expect(runAgent({ ...options, coordinator: address })).rejects.toMatchObject({ code: "DROVER-API-014" });
  const unreachable = { url: "http://127.0.0.1:1", token: null };
  await expect(runAgent({ ...options, coordinator: unreachable })).rejects.toMatchObject({ code: "DROVER-API-023" });
});

it("rejects another user's session with a SessionError that does not reveal its owner", async () => {
  const { coordinator, address } = await startFleet();
  const agent = { name: "helper", executor: "model", provider: "scripted" };
  const { sessionId } = await runAgent({ agent, prompt: "Do it", stateDir: "not used", coordinator: address });
  const { token } = await coordinator.client.tokens.create({ role: "user", subject: "bob" });
  const options = { prompt: "x", stateDir: "not used", agent: "helper", coordinator: { url: address.url, token } };
  for (const mode of ["resume", "fork"]) {
    const refused: unknown = await runAgent({ ...options, [mode]: sessionId }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(SessionError);
    expect(refused).toMatchObject({ sessionId, agentName: "helper", jobId: "" });
    expect(String(refused)).not.toContain("admin");
  }
  expect((await coordinator.client.runs.list()).items).toHaveLength(1);
});

it("returns the id of a run that it can no longer follow because its token was revoked", async () => {
  const { coordinator, address, directory } = await startFleet();
  const [startedFile, continueFile, script] = ["started", "continue", "turns.json"].map((name) =>
    join(directory, name),
  );
  const command = `touch ${startedFile}; until test -e ${continueFile}; do sleep 0.05; done`;
  const turns = [{ tools: [{ name: "command.run", input: { command } }] }, { text: "It is done." }];
  writeFileSync(script!, JSON.stringify({ turns }));
  await coordinator.client.agents.put("slow", {
    type: "autonomous",
    executor: "model",
    provider: "scripted",
    script: script!,
    permissions: { mode: "bypassPermissions" },
  });
  const { token, token_id } = await coordinator.client.tokens.create({ role: "user", subject: "bob" });
  const running = runAgent({ agent: "slow", prompt: "x", stateDir: "s", coordinator: { url: address.url, token } });
  await expect.poll(() => existsSync(startedFile!)).toBe(true);
  await coordinator.client.tokens.revoke(token_id);
  const result = await running;
  expect(result).toMatchObject({ success: false, jobId: expect.any(String), error: { name: "RunnerError" } });
  expect(result.error!.message).toContain(`Lost track of run ${result.jobId} of agent slow before it finished`);
  expect(result.error!.cause).toMatchObject({ code: expect.stringMatching(/^DROVER-API-/) });
  // The run itself continues.
  writeFileSync(continueFile!, "");
  await expect.poll(async () => (await coordinator.client.runs.get(result.jobId)).status).toBe("completed");
});
