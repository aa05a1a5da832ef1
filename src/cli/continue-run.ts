import type { Run } from "../model/run.ts";
import { parseShortLivedName } from "../model/short-lived-runner.ts";
import { followRun } from "./follow-run.ts";
import { write } from "./io.ts";
import type { CommandInput } from "./options.ts";
import { withCoordinator } from "./with-coordinator.ts";
import { findDroverCommand } from "./drover-command.ts";

/**
 * Continues a parked run in this process until it ends. A command without a coordinator started the run, and the run
 * demands the runner of that command. The runner of this command therefore takes the same name.
 */
export async function continueRun(input: CommandInput, run: Run): Promise<number> {
  const runner = parseShortLivedName(run.demands.runner_id);
  if (runner === null || run.session_id === null) {
    if (!input.options["quiet"])
      write(
        2,
        `The run continues when a runner claims it. Start one: ${findDroverCommand()} up\n  Then watch the run: ${findDroverCommand()} runs events ${run.run_id}\n`,
      );
    return 0;
  }
  return withCoordinator(input, { session: run.session_id, runner }, async (client) => {
    const resumedRun = run.status === "parked" ? await client.runs.resume(run.run_id) : run;
    return followRun(client, { run: resumedRun, type: "autonomous" }, input);
  });
}
