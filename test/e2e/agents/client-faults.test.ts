import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Run } from "../../../src/model/run.ts";
import type { ClientName } from "../../clients/clients.ts";
import type { Script } from "../../model-server/script.ts";
import { root } from "../drover.ts";
import { type AgentHarness, startAgentHarness } from "./harness.ts";
import { waitForRunEnd, listEvents, listFilePaths, processesOf, submit } from "./runs.ts";

const texts = join(root, "test", "fixtures", "clients", "claude-text.jsonl");

/** A client that fails in ways that real ones rarely do. The prompt selects the failure. */
const badClient = `#!/bin/sh
case "$(cat)" in
  nothing) exit 0 ;;
  refuse) printf 'no%.0s' $(seq 500) >&2; exit 3 ;;
  garbage)
    head -c 100000 /dev/urandom
    printf '\\n{"type":"assistant"\\n[]\\nnull\\n{"type":"result"\\n'
    printf '{"type":"assistant","message":{"content":[{"type":"text","text":"'
    head -c 60000000 /dev/zero | tr '\\0' y
    printf '"}]}}\\n'
    cat ${texts} ;;
  "only garbage") printf 'hello\\n{"type":\\n'; exit 0 ;;
  lingering) cat ${texts}; sleep 3600 & sleep 3600 ;;
  silent) sleep 3600 ;;
esac
`;

test("a client that lies, prints garbage, fails or does not exit is judged by its output", async () => {
  const harness = await startAgentHarness({
    script: [],
    clients: ["claude"],
    profile: { slots: 6, config: { bin: "./bad-client" } },
    before: (cwd) => writeFileSync(join(cwd, "bad-client"), badClient, { mode: 0o755 }),
  });
  const agent = { type: "autonomous", executor: "claude", demands: { executor_type: "claude" } };
  await harness.coordinator.call("PUT", "/agents/quiet", { ...agent, idle_timeout_seconds: 3 });
  const prompts = ["nothing", "refuse", "garbage", "only garbage", "lingering"];
  const submitted = await Promise.all([
    ...prompts.map((prompt) => submit(harness.coordinator, { agent_name: "claude", prompt })),
    submit(harness.coordinator, { agent_name: "quiet", prompt: "silent" }),
  ]);
  const outcomes = await Promise.all(submitted.map(({ run_id }) => waitForRunEnd(harness.coordinator, run_id)));
  const text = "Hello there, world of clients.";
  expect(outcomes).toMatchObject([
    { status: "failed", reason: "provider_invalid_response", exit_code: 0 },
    {
      status: "failed",
      reason: "exit_nonzero",
      exit_code: 3,
      error: expect.stringMatching(/^(no)+\n\[\.\.\.\]\no?(no)+$/),
    },
    { status: "completed", result_text: text },
    { status: "failed", reason: "provider_invalid_response" },
    // The result counts, although the client had to be killed afterwards.
    { status: "completed", result_text: text },
    { status: "failed", reason: "idle" },
  ]);
  const lingeringRun = await listEvents(harness.coordinator, outcomes[4]!.run_id);
  expect(lingeringRun).toContainEqual(expect.objectContaining({ type: "system", subtype: "ended_after_result" }));
  for (const { run_id } of outcomes) {
    expect(processesOf(run_id)).toEqual([]);
    for (const event of await listEvents(harness.coordinator, run_id))
      expect(JSON.stringify(event).length).toBeLessThan(300_000);
  }
});

const endlessScript: Script = [
  {
    when: "work for long",
    turns: [
      {
        tool: {
          name: "shell",
          input: { command: "echo begun > begun.txt; sleep 3600 & setsid sleep 3600 & sleep 3600" },
        },
      },
    ],
  },
];

const fullAccess = { type: "autonomous", permissions: { mode: "bypassPermissions" } };

/** Starts a run with full permissions and waits until it is in the middle of an endless command. */
async function startWorking(harness: AgentHarness, client: ClientName): Promise<Run> {
  const agent = { ...fullAccess, executor: client, demands: { executor_type: client } };
  expect(await harness.coordinator.call("PUT", `/agents/free-${client}`, agent)).toMatchObject({ status: 200 });
  const run = await submit(harness.coordinator, { agent_name: `free-${client}`, prompt: "work for long" });
  await expect.poll(() => processesOf(run.run_id).filter(({ name }) => name === "sleep").length).toBe(3);
  return run;
}

test("killing a client in the middle of a command ends the command too", async () => {
  const harness = await startAgentHarness({
    script: endlessScript,
    clients: ["claude"],
    profile: { config: { allow_full_auto: true } },
  });
  const { run_id } = await startWorking(harness, "claude");
  const client = processesOf(run_id).find(({ name }) => name === "claude");
  process.kill(client!.pid, "SIGKILL");
  const run = await waitForRunEnd(harness.coordinator, run_id);
  expect(run).toMatchObject({ status: "failed", reason: "signalled" });
  expect(run.error).toContain("SIGKILL");
  expect(processesOf(run_id)).toEqual([]);
  expect(await listFilePaths(harness.coordinator, run_id)).toEqual(["begun.txt"]);
});

test("codex and gemini stopped in the middle of a command leave no process", async () => {
  const harness = await startAgentHarness({
    script: endlessScript,
    clients: ["codex", "gemini"],
    profile: { config: { allow_full_auto: true } },
  });
  const runs = await Promise.all([startWorking(harness, "codex"), startWorking(harness, "gemini")]);
  for (const { run_id } of runs) {
    await harness.coordinator.call("POST", `/runs/${run_id}/stop`);
    expect(await waitForRunEnd(harness.coordinator, run_id)).toMatchObject({ status: "cancelled" });
    expect(processesOf(run_id)).toEqual([]);
    expect(await listFilePaths(harness.coordinator, run_id)).toEqual([]);
  }
});

test("an unreachable model is reported as such, by the client or on timeout", async () => {
  const harness = await startAgentHarness({ script: [] });
  await harness.model.stop();
  const clients = ["claude", "codex", "gemini"];
  const submitted = await Promise.all(
    clients.map((agent_name) =>
      // codex waits for the network without a limit.
      submit(harness.coordinator, {
        agent_name,
        prompt: "say something",
        ...(agent_name === "codex" ? { timeout_seconds: 15 } : {}),
      }),
    ),
  );
  const [claude, codex, gemini] = await Promise.all(
    submitted.map(({ run_id }) => waitForRunEnd(harness.coordinator, run_id)),
  );
  expect(claude).toMatchObject({ status: "failed", reason: "provider_network" });
  expect(gemini).toMatchObject({ status: "failed", reason: "provider_network" });
  expect(codex!.status).toBe("failed");
  expect(["timeout", "provider_network"]).toContain(codex!.reason);
  expect(await listEvents(harness.coordinator, codex!.run_id)).toContainEqual(
    expect.objectContaining({ type: "error", message: expect.stringMatching(/network|connect/i) as string }),
  );
  for (const { run_id } of submitted) expect(processesOf(run_id)).toEqual([]);
});
