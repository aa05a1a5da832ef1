import { RequestError } from "../model/errors.ts";
import type { Client } from "../wire/client.ts";
import { connectOrFail } from "./connect.ts";
import { write } from "./io.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { age, writeTable } from "./table.ts";

export const runnersList: CommandSpec = {
  name: "runners list",
  summary: "who claims runs",
  takes: "",
  words: [0, 0],
  examples: [["drover runners list", "each with its profile, tags and what it runs"]],
  options: {},
  run: listRunners,
};

export const runnersDrain: CommandSpec = {
  name: "runners drain",
  summary: "no further runs for a runner; what it runs goes on",
  takes: "RUNNER",
  words: [1, 1],
  examples: [["drover runners drain build-1-echo", "by its id, or the beginning of it; --undo takes it back"]],
  options: { undo: { about: "let it claim again" } },
  run: drainRunner,
};

async function listRunners(input: CommandInput): Promise<number> {
  const { items } = await (await connectOrFail(input)).runners.list();
  if (input.options["json"]) {
    for (const runner of items) write(1, `${JSON.stringify(runner)}\n`);
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
      age(runner.last_seen_at, now),
    ]),
  );
  return 0;
}

async function drainRunner(input: CommandInput): Promise<number> {
  const client = await connectOrFail(input);
  const runner_id = await findRunner(client, input.positionals[0]!);
  const draining = input.options["undo"] !== true;
  await client.runners.drain(runner_id, draining);
  if (input.options["json"]) write(1, `${JSON.stringify({ runner_id, draining })}\n`);
  else if (!input.options["quiet"])
    write(2, draining ? `${runner_id} takes no further runs.\n` : `${runner_id} claims again.\n`);
  return 0;
}

/** A runner's id from the beginning of it, where only one begins so. */
async function findRunner(client: Client, given: string): Promise<string> {
  const ids = (await client.runners.list()).items.map(({ runner_id }) => runner_id);
  const matches = given === "" ? [] : ids.filter((id) => id.startsWith(given));
  if (matches.length === 1) return matches[0]!;
  throw new RequestError({
    code: "DROVER-USE-008",
    field: "RUNNER",
    message:
      matches.length > 1
        ? `More than one runner begins with ${given}: ${matches.join(", ")}.`
        : `There is no runner ${given}, or it is not yours.`,
    next: "`drover runners list` shows the runners.",
  });
}
