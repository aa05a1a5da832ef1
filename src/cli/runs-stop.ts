import type { ApiClient } from "../wire/client.ts";
import { findRunId } from "./find-id.ts";
import { withRecord } from "./with-record.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readText, usageError } from "./options.ts";

export const runsStop: CommandSpec = {
  name: "runs stop",
  summary: "stop runs and all their processes",
  placeholders: "[RUN...]",
  arity: [0, Infinity],
  examples: [
    ["drover runs stop 5c20e9d4", "one run, by id or by the beginning or end of its id"],
    ["drover runs stop last", "your newest run"],
    ["drover runs stop --agent nightly", "all unfinished runs of an agent"],
    ["drover runs stop --all", "all unfinished runs"],
  ],
  options: {
    agent: { placeholder: "NAME", description: "stop every unfinished run of this agent" },
    all: { description: "stop every unfinished run" },
  },
  run: stopRuns,
};

async function stopRuns(input: CommandInput): Promise<number> {
  const { options, positionals } = input;
  const agent = readText(options, "agent");
  if (positionals.length === 0 && !agent && !options["all"])
    throw usageError("Specify the runs to stop, or pass --agent or --all.", "runs stop", "RUN");
  const stoppedRuns =
    (await withRecord(input, (client) => stopSelected(client, positionals, agent, options["all"] === true))) ?? [];
  if (options["json"]) write(1, toJsonLine(stoppedRuns));
  else for (const { run_id, status } of stoppedRuns) write(1, `${run_id}\t${status}\n`);
  return 0;
}

interface StoppedRun {
  run_id: string;
  status: string;
}

async function stopSelected(
  client: ApiClient,
  queries: readonly string[],
  agent: string | undefined,
  all: boolean,
): Promise<StoppedRun[]> {
  const ids: string[] = [];
  // Find all runs before the first is stopped, so that a wrong id stops nothing.
  for (const query of queries) ids.push(await findRunId(client, query));
  const stoppedRuns: StoppedRun[] = [];
  for (const id of ids) {
    const { run_id, status } = await client.runs.stop(id);
    stoppedRuns.push({ run_id, status });
  }
  if (agent || all) {
    const stoppedIds = await client.runs.stopMany(agent ? { agent_name: agent } : { all: true });
    for (const status of ["cancelled", "stopping"] as const)
      for (const run_id of stoppedIds[status]) stoppedRuns.push({ run_id, status });
  }
  return stoppedRuns;
}
