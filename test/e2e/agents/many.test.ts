import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { homesDirectory, runsDirectory, tmpDirectory } from "../../../src/model/state-layout.ts";
import type { Script } from "../../model-server/script.ts";
import { createDirectory, root } from "../drover.ts";
import { type AgentHarness, startAgentHarness } from "./harness.ts";
import { waitForRunEnd, listEvents, filesBelow, processesOf, show, submit } from "./runs.ts";

const count = 3;
const numbers = Array.from({ length: count }, (_one, index) => index + 1);

/** Each run writes its own file and waits in a command until all have started. */
const script: Script = numbers.map((number) => ({
  when: `do task ${number}.`,
  turns: [
    { tool: { name: "write_file", input: { path: "mine.txt", content: `of ${number}` } } },
    {
      tool: {
        name: "shell",
        input: {
          command: `touch "$MEETING/${number}"; until [ $(ls "$MEETING" | wc -l) -ge ${count} ]; do sleep 0.2; done; cat mine.txt`,
        },
      },
    },
    { text: `Task ${number} is done.` },
  ],
}));

test("three claude runs work concurrently on one runner without seeing each other's files", async () => {
  const meetingDirectory = createDirectory();
  const harness = await startAgentHarness({
    script,
    clients: ["claude"],
    profile: { slots: count, home: "session", env_from: ["MEETING"], config: { allow_full_auto: true } },
    env: { MEETING: meetingDirectory },
  });
  await putAgent(harness, "free", { permissions: { mode: "bypassPermissions" } });
  const runs = await Promise.all(
    numbers.map(async (number) => {
      const { run_id } = await submit(harness.coordinator, { agent_name: "free", prompt: `do task ${number}.` });
      return { number, run: await waitForRunEnd(harness.coordinator, run_id, 200_000) };
    }),
  );
  for (const { number, run } of runs) {
    expect(run).toMatchObject({ status: "completed", attempt: 1, result_text: `Task ${number} is done.` });
    expect(await harness.files(run)).toEqual({ "mine.txt": `of ${number}` });
    const output = (await listEvents(harness.coordinator, run.run_id)).findLast(({ type }) => type === "tool_result");
    expect(output).toMatchObject({ is_error: false, output: `of ${number}` });
  }
  expect(readdirSync(meetingDirectory)).toHaveLength(count);
  const sessions = await Promise.all(
    runs.map(({ run }) =>
      harness.coordinator.call<{ executor_session_id: string }>("GET", `/sessions/${run.session_id}`),
    ),
  );
  expect(new Set(sessions.map(({ json }) => json.executor_session_id)).size).toBe(count);
  expect(readdirSync(homesDirectory(runsDirectory(join(harness.cwd, "runner"))))).toHaveLength(count);
  for (const { messages } of harness.model.requests) {
    const prompts = messages.flatMap(({ text }) => text.match(/do task \d+/g) ?? []);
    expect(new Set(prompts).size).toBeLessThan(2);
  }
  for (const { run } of runs) expect(processesOf(run.run_id)).toEqual([]);
});

/** A script in place of claude that does what its prompt says and leaves files behind. */
const cheapClient = `#!/bin/sh
task=$(cat)
mkdir -p "$TMPDIR/mess" "$HOME/.claude/mess"; echo x > "$TMPDIR/mess/file"; echo x > "$HOME/.claude/mess/file"
echo made > made.txt
case $task in
  stay) setsid sleep 3600 & sleep 3600 ;;
  "until go") until [ -e go ]; do sleep 0.1; done ;;
esac
cat ${join(root, "test", "fixtures", "clients", "claude-text.jsonl")}
`;

function startCheapHarness(): Promise<AgentHarness> {
  return startAgentHarness({
    script: [],
    clients: ["claude"],
    profile: { slots: 12, home: "session", config: { bin: "./cheap-client" } },
    before: (cwd) => writeFileSync(join(cwd, "cheap-client"), cheapClient, { mode: 0o755 }),
  });
}

test("two runs in one directory wait for each other", async () => {
  const harness = await startCheapHarness();
  const project_dir = join(harness.cwd, "project");
  mkdirSync(project_dir);
  const first = await submit(harness.coordinator, { agent_name: "claude", prompt: "until go", project_dir });
  await expect.poll(() => readdirSync(project_dir)).toContain("made.txt");
  const second = await submit(harness.coordinator, { agent_name: "claude", prompt: "at once", project_dir });
  const runInOtherDirectory = await submit(harness.coordinator, { agent_name: "claude", prompt: "at once" });
  // A later run in another directory does not wait.
  expect(await waitForRunEnd(harness.coordinator, runInOtherDirectory.run_id)).toMatchObject({ status: "completed" });
  expect(await show(harness.coordinator, second.run_id)).toMatchObject({ status: "pending", started_at: null });
  const { json: why } = await harness.coordinator.call("GET", `/runs/${second.run_id}/why`);
  expect(JSON.stringify(why)).toContain("directory");
  writeFileSync(join(project_dir, "go"), "");
  const [one, two] = [
    await waitForRunEnd(harness.coordinator, first.run_id),
    await waitForRunEnd(harness.coordinator, second.run_id),
  ];
  expect([one.status, two.status]).toEqual(["completed", "completed"]);
  expect(Date.parse(two.started_at!)).toBeGreaterThanOrEqual(Date.parse(one.finished_at!));
});

test("twelve runs, a third of them stopped, leave nothing once their sessions are deleted", async () => {
  const harness = await startCheapHarness();
  const prompts = Array.from({ length: 12 }, (_one, index) => (index % 3 === 0 ? "stay" : "at once"));
  const submitted = await Promise.all(
    prompts.map(async (prompt) => ({
      ...(await submit(harness.coordinator, { agent_name: "claude", prompt })),
      prompt,
    })),
  );
  for (const { run_id, prompt } of submitted) {
    if (prompt === "stay") {
      const sleepingRuns = () => processesOf(run_id).filter(({ name }) => name === "sleep").length;
      await expect.poll(sleepingRuns).toBe(2);
      await harness.coordinator.call("POST", `/runs/${run_id}/stop`);
    }
    const status = prompt === "stay" ? "cancelled" : "completed";
    expect(await waitForRunEnd(harness.coordinator, run_id)).toMatchObject({ status });
    expect(processesOf(run_id)).toEqual([]);
  }
  const state = join(harness.cwd, "runner");
  await expect.poll(() => filesBelow(tmpDirectory(runsDirectory(state)))).toEqual([]);
  for (const name of ["work", "homes"]) expect(readdirSync(join(runsDirectory(state), name))).toHaveLength(12);
  for (const { session_id } of submitted)
    expect((await harness.coordinator.call("DELETE", `/sessions/${session_id}`)).status).toBeLessThan(300);
  // The runner cleans up at startup and every minute.
  await harness.restartRunner();
  for (const name of ["work", "homes"])
    await expect.poll(() => readdirSync(join(runsDirectory(state), name))).toEqual([]);
});

async function putAgent(
  harness: AgentHarness,
  name: string,
  changes: Readonly<Record<string, unknown>>,
): Promise<void> {
  const agent = { type: "autonomous", executor: "claude", demands: { executor_type: "claude" }, ...changes };
  expect(await harness.coordinator.call("PUT", `/agents/${name}`, agent)).toMatchObject({ status: 200 });
}
