import { connectOrFail } from "./connect.ts";
import { write } from "./io.ts";
import type { CommandInput, CommandSpec } from "./options.ts";

export const runsRetry: CommandSpec = {
  name: "runs retry",
  summary: "a new run with the same agent and parameters",
  takes: "RUN",
  words: [1, 1],
  examples: [["drover runs retry 019a3f0e-7c1b-7a3e-9d54-2f6f1f0a9b11", "prints the new run's id"]],
  options: {},
  run: retry,
};

async function retry(input: CommandInput): Promise<number> {
  const run = await (await connectOrFail(input)).runs.retry(input.positionals[0]!);
  write(1, input.options["json"] ? `${JSON.stringify(run)}\n` : `${run.run_id}\n`);
  if (!input.options["quiet"]) write(2, `Watch it: drover runs events ${run.run_id}\n`);
  return 0;
}
