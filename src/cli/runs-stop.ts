import { connectOrFail } from "./connect.ts";
import { write } from "./io.ts";
import { type CommandInput, type CommandSpec, text, usage } from "./options.ts";

export const runsStop: CommandSpec = {
  name: "runs stop",
  summary: "end runs, and everything they started",
  takes: "[RUN...]",
  words: [0, Infinity],
  examples: [
    ["drover runs stop 019a3f0e-7c1b-7a3e-9d54-2f6f1f0a9b11", "one run"],
    ["drover runs stop --agent nightly", "all runs of an agent"],
    ["drover runs stop --all", "everything"],
  ],
  options: {
    agent: { value: "NAME", about: "every unfinished run of this agent" },
    all: { about: "every unfinished run" },
  },
  run: stopRuns,
};

async function stopRuns(input: CommandInput): Promise<number> {
  const { options, positionals } = input;
  const agent = text(options, "agent");
  if (positionals.length === 0 && !agent && !options["all"])
    throw usage("Name the runs to stop, or give --agent or --all.", "runs stop", "RUN");
  const client = await connectOrFail(input);
  const stopped: string[] = [];
  for (const run_id of positionals) {
    const run = await client.runs.stop(run_id);
    stopped.push(`${run.run_id}\t${run.status}`);
  }
  if (agent || options["all"]) {
    const many = await client.runs.stopMany(agent ? { agent_name: agent } : { all: true });
    for (const run_id of many.cancelled) stopped.push(`${run_id}\tcancelled`);
    for (const run_id of many.stopping) stopped.push(`${run_id}\tstopping`);
  }
  if (options["json"])
    write(
      1,
      `${JSON.stringify(
        stopped.map((line) =>
          Object.fromEntries([
            ["run_id", line.split("\t")[0]],
            ["status", line.split("\t")[1]],
          ]),
        ),
      )}\n`,
    );
  else for (const line of stopped) write(1, `${line}\n`);
  return 0;
}
