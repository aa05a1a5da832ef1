import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { RunnerRow } from "../../src/model/dispatch-ops.ts";
import type { StoredEvent } from "../../src/model/event.ts";
import type { Run } from "../../src/model/run.ts";
import type { FlatAgent } from "../../src/wire/client.ts";
import { createDirectory } from "./drover.ts";
import { startRunner, runToEnd, startCoordinator, type CoordinatorProcess } from "./coordinator-process.ts";

type PageOf<T> = { items: T[] };

async function echoPlace(): Promise<{ directory: string; coordinator: CoordinatorProcess }> {
  const directory = createDirectory();
  const coordinator = await startCoordinator(directory);
  await startRunner(coordinator, directory, "one", ["-x", "echo"]);
  return { directory, coordinator };
}

test("walks through runners, agents, a run of echo, and one that its script refuses", async () => {
  const { coordinator } = await echoPlace();
  const { json: runners } = await coordinator.call<PageOf<RunnerRow>>("GET", "/runners");
  expect(runners.items).toMatchObject([{ executor_profile: "echo", status: "online", agents: ["echo"] }]);
  const { json: agents } = await coordinator.call<PageOf<FlatAgent>>("GET", "/agents");
  expect(agents.items).toMatchObject([
    { name: "echo", type: "procedural", command: "scripts/echo/echo", runner_id: runners.items[0]?.runner_id },
  ]);

  const run = await runToEnd(coordinator, { agent_name: "echo", parameters: { message: "Hello World" } });
  expect(run).toMatchObject({
    status: "completed",
    exit_code: 0,
    result_data: { message: "Hello World" },
    runner_id: runners.items[0]?.runner_id,
  });

  const refused = await runToEnd(coordinator, {
    agent_name: "echo",
    parameters: { message: "Hello", unknown: "param" },
  });
  expect(refused).toMatchObject({ status: "failed", reason: "exit_nonzero", exit_code: 1, result_data: null });
  expect(refused.error).toContain("Unknown parameter: --unknown");
  const { json: events } = await coordinator.call<PageOf<StoredEvent>>("GET", `/runs/${refused.run_id}/events`);
  const stderr = events.items.map(({ event }) =>
    event.type === "output" && event.stream === "stderr" ? event.text : "",
  );
  expect(stderr.join("")).toContain("Unknown parameter: --unknown");
  expect(events.items.at(-1)?.event).toMatchObject({ type: "result", status: "failed", exit_code: 1 });
});

test("returns any message unchanged", async () => {
  const { coordinator } = await echoPlace();
  const messages = [
    `"double" and 'single' and \`back\``,
    "two\nlines\r\nand\ta tab",
    "--x",
    "--message",
    "-",
    "$(id)",
    "$HOME; rm -rf / | cat & #",
    "😀 e\u0301 \u{1F468}\u200D\u{1F469}\u200D\u{1F467}",
    " leading and trailing ",
    "\\n \\u0041 %s *",
    "x".repeat(100_000),
  ];
  const answers = await Promise.all(
    messages.map((message) => runToEnd(coordinator, { agent_name: "echo", parameters: { message } })),
  );
  expect(answers.map(({ status, result_data }) => [status, result_data])).toEqual(
    messages.map((message) => ["completed", { message }]),
  );
});

/** Writes a profile with one agent whose script prints its directory. */
function writeProfile(directory: string): void {
  for (const name of ["profiles", "agents/test", "scripts"]) mkdirSync(join(directory, name), { recursive: true });
  writeFileSync(
    join(directory, "profiles", "with-agents.json"),
    JSON.stringify({ type: "procedural", config: {}, agents_dir: "./agents/test" }),
  );
  writeFileSync(join(directory, "profiles", "without-agents.json"), JSON.stringify({ type: "procedural", config: {} }));
  writeFileSync(
    join(directory, "agents", "test", "sum.json"),
    JSON.stringify({
      name: "sum",
      command: "scripts/sum",
      parameters_schema: { type: "object", properties: { a: { type: "integer" }, b: { type: "integer" } } },
    }),
  );
  writeFileSync(join(directory, "scripts", "sum"), `#!/bin/sh\nprintf '{"sum": %s}\\n' "$(($2 + $4))"\n`);
  chmodSync(join(directory, "scripts", "sum"), 0o755);
}

test("case 17: a runner offers its profile's agents, and a run of one ends with a result event with its data", async () => {
  const directory = createDirectory();
  writeProfile(directory);
  const coordinator = await startCoordinator(directory);
  await startRunner(coordinator, directory, "one", ["-x", join(directory, "profiles", "with-agents.json")]);
  const { json: runners } = await coordinator.call<PageOf<RunnerRow>>("GET", "/runners");
  expect(runners.items).toMatchObject([{ executor_profile: "with-agents", agents: ["sum"] }]);
  const run = await runToEnd(coordinator, { agent_name: "sum", parameters: { a: 19, b: 23 } });
  const { json: events } = await coordinator.call<PageOf<StoredEvent>>("GET", `/runs/${run.run_id}/events`);
  expect(events.items.at(-1)?.event).toMatchObject({
    type: "result",
    status: "completed",
    exit_code: 0,
    result_data: { sum: 42 },
    result_text: '{"sum": 42}\n',
  });
});

test("case 18: a run goes to the one of two runners that has its agent", async () => {
  const directory = createDirectory();
  writeProfile(directory);
  const coordinator = await startCoordinator(directory);
  await startRunner(coordinator, directory, "with", ["-x", join(directory, "profiles", "with-agents.json")]);
  await startRunner(coordinator, directory, "without", ["-x", join(directory, "profiles", "without-agents.json")]);
  const { json } = await coordinator.call<PageOf<RunnerRow>>("GET", "/runners");
  const owner = json.items.find(({ name }) => name === "with");
  const otherAgent = json.items.find(({ name }) => name === "without");
  expect(otherAgent).toMatchObject({ status: "online", agents: [] });
  const runs = await Promise.all(
    Array.from({ length: 10 }, (_, index) =>
      runToEnd(coordinator, { agent_name: "sum", parameters: { a: index, b: index } }),
    ),
  );
  expect(runs.map(({ runner_id, result_data }) => [runner_id, result_data])).toEqual(
    runs.map((_, index) => [owner?.runner_id, { sum: 2 * index }]),
  );
});

test("case 19: a procedural run cannot be resumed or forked", async () => {
  const { coordinator } = await echoPlace();
  const run = await runToEnd(coordinator, { agent_name: "echo", parameters: { message: "first" } });
  for (const mode of ["resume", "fork"]) {
    const { status, json } = await coordinator.call<{ detail: string }>("POST", "/runs", {
      agent_name: "echo",
      mode,
      session_id: run.session_id,
      parameters: { message: "again" },
    });
    expect([status, json.detail]).toEqual([400, "Procedural agents cannot resume or fork a session."]);
  }
  const { json: runs } = await coordinator.call<PageOf<Run>>("GET", "/runs");
  expect(runs.items.map(({ run_id }) => run_id)).toEqual([run.run_id]);
});

test("without auth, the same walk needs no token", async () => {
  const directory = createDirectory();
  const coordinator = await startCoordinator(directory, { AUTH_ENABLED: "false" });
  await startRunner({ ...coordinator, token: "" }, directory, "one", ["-x", "echo"]);
  const { status, json } = await coordinator.call<PageOf<FlatAgent>>("GET", "/agents", undefined, null);
  expect([status, json.items[0]?.name]).toEqual([200, "echo"]);
});
