import type { Run } from "../model/run.ts";
import { attendRun } from "./attend-run.ts";
import { write } from "./io.ts";
import type { CommandInput } from "./options.ts";
import { withCoordinator } from "./with-coordinator.ts";

/**
 * Continues a run that an earlier command without a coordinator began and left parked: in this process, to its end. The
 * run demands the runner of that command, so this command's runner takes its name.
 */
export async function continueHere(input: CommandInput, run: Run): Promise<number> {
  const runner = shortLivedName(run);
  if (runner === null || run.session_id === null) {
    if (!input.options["quiet"])
      write(2, `It continues when a runner of this place takes it: drover up\n  drover runs events ${run.run_id}\n`);
    return 0;
  }
  return withCoordinator(input, { session: run.session_id, runner }, async (client) => {
    const resumed = run.status === "parked" ? await client.runs.resume(run.run_id) : run;
    return attendRun(client, { run: resumed, type: "autonomous" }, input);
  });
}

/** The name that a runner without a coordinator gave itself is the beginning of its id: see with-own.ts. */
function shortLivedName({ demands: { runner_id } }: Run): string | null {
  return /^(run-\d+-[0-9a-f]{8})-/.exec(runner_id ?? "")?.[1] ?? null;
}
