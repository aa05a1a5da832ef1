import { findOnlyMatch } from "./find-id.ts";
import { withHistory } from "./history.ts";
import { write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { formatAge, writeTable } from "./table.ts";

export const runnersList: CommandSpec = {
  name: "runners list",
  summary: "list runners",
  takes: "",
  arity: [0, 0],
  examples: [["drover runners list", "with their profiles, tags and active runs"]],
  options: {},
  run: listRunners,
};

export const runnersDrain: CommandSpec = {
  name: "runners drain",
  summary: "stop a runner from claiming runs; its active runs continue",
  takes: "RUNNER",
  arity: [1, 1],
  examples: [["drover runners drain build-1-echo", "by id or a prefix of it; --undo reverts it"]],
  options: { undo: { about: "let the runner claim runs again" } },
  run: drainRunner,
};

async function listRunners(input: CommandInput): Promise<number> {
  const items = (await withHistory(input, async (client) => (await client.runners.list()).items)) ?? [];
  if (input.options["json"]) {
    for (const runner of items) write(1, jsonLine(runner));
    return 0;
  }
  const now = new Date();
  writeTable(
    ["ID", "STATUS", "PROFILE", "HOST", "RUNNING", "TAGS", "AGENTS", "SEEN"],
    items.map((runner) => [
      runner.runner_id,
      runner.status,
      runner.executor_profile,
      runner.hostname,
      `${runner.running}/${runner.slots}`,
      runner.tags.join(",") || "-",
      runner.agents.join(",") || "-",
      formatAge(runner.last_seen_at, now),
    ]),
  );
  return 0;
}

async function drainRunner(input: CommandInput): Promise<number> {
  const isDraining = input.options["undo"] !== true;
  const runner_id = await withHistory(input, async (client) => {
    const { items } = await client.runners.list();
    const ids = items.map((runner) => runner.runner_id);
    const runnerId = findOnlyMatch("runner", input.positionals[0]!, ids);
    await client.runners.drain(runnerId, isDraining);
    return runnerId;
  });
  if (runner_id === null) return 1;
  if (input.options["json"]) write(1, jsonLine({ runner_id, draining: isDraining }));
  else if (!input.options["quiet"])
    write(2, isDraining ? `${runner_id} is draining: it claims no more runs.\n` : `${runner_id} claims runs again.\n`);
  return 0;
}
