import type { ApiClient } from "../wire/client.ts";
import type { Output } from "../wire/contracts.ts";
import { toStatusCell, toTimeCell } from "./cells.ts";
import { findNewestOwn, findOnlyMatch, newestKeyword } from "./find-id.ts";
import { withRecord } from "./with-record.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { writeTable } from "./table.ts";

type Runner = Output<"GET /runners">["items"][number];

export const runnersList: CommandSpec = {
  name: "runners list",
  summary: "list runners",
  placeholders: "",
  arity: [0, 0],
  examples: [["drover runners list", "with their profiles, tags and active runs"]],
  options: {},
  run: listRunners,
};

export const runnersDrain: CommandSpec = {
  name: "runners drain",
  summary: "stop a runner from claiming runs; its active runs continue",
  placeholders: "RUNNER",
  arity: [1, 1],
  examples: [["drover runners drain build-1-echo", "by id, or by its beginning or end; --undo reverts it"]],
  options: { undo: { description: "let the runner claim runs again" } },
  run: drainRunner,
};

async function listRunners(input: CommandInput): Promise<number> {
  const items = (await withRecord(input, async (client) => (await client.runners.list()).items)) ?? [];
  if (input.options["json"]) {
    for (const runner of items) write(1, toJsonLine(runner));
    return 0;
  }
  const now = new Date();
  writeTable(
    ["ID", "STATUS", "PROFILE", "HOST", "RUNNING", "TAGS", "AGENTS", "SEEN"],
    items.map((runner) => [
      { id: runner.runner_id },
      toStatusCell(runner.status),
      runner.executor_profile,
      runner.hostname,
      `${runner.running}/${runner.slots}`,
      runner.tags.join(",") || "-",
      runner.agents.join(",") || "-",
      toTimeCell(runner.last_seen_at, now),
    ]),
    ["TAGS", "AGENTS"],
  );
  return 0;
}

async function findRunnerId(client: ApiClient, runners: readonly Runner[], query: string): Promise<string> {
  const ids = runners.map(({ runner_id }) => runner_id);
  if (query !== newestKeyword || ids.includes(query)) return findOnlyMatch("runner", query, ids);
  const newestFirst = runners.toSorted((a, b) => (a.registered_at < b.registered_at ? 1 : -1));
  return (await findNewestOwn(client, "runner", newestFirst, ({ owner }) => owner)).runner_id;
}

async function drainRunner(input: CommandInput): Promise<number> {
  const isDraining = input.options["undo"] !== true;
  const runner_id = await withRecord(input, async (client) => {
    const { items } = await client.runners.list();
    const runnerId = await findRunnerId(client, items, input.positionals[0]!);
    await client.runners.drain(runnerId, isDraining);
    return runnerId;
  });
  if (runner_id === null) return 1;
  if (input.options["json"]) write(1, toJsonLine({ runner_id, draining: isDraining }));
  else if (!input.options["quiet"])
    write(2, isDraining ? `${runner_id} is draining: it claims no more runs.\n` : `${runner_id} claims runs again.\n`);
  return 0;
}
