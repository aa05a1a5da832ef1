import type { Run } from "../model/run.ts";
import type { ApiClient } from "../wire/client.ts";
import { findRun } from "./find-id.ts";
import { withHistory } from "./history.ts";
import { columns } from "./help.ts";
import { write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { printable } from "./table.ts";

export const runsWhy: CommandSpec = {
  name: "runs why",
  summary: "show what a run waits for",
  takes: "RUN",
  arity: [1, 1],
  examples: [
    ["drover runs why last", "the newest run of yours"],
    ["drover runs why 5c20e9d4 --json", "as JSON"],
  ],
  options: {},
  run: explainRun,
};

type Waiting = Awaited<ReturnType<ApiClient["runs"]["why"]>>;

async function explainRun(input: CommandInput): Promise<number> {
  const found = await withHistory(input, async (client, isLive) => {
    const run = await findRun(client, input.positionals[0]!);
    return { run, ...(isLive ? await client.runs.why(run.run_id) : explainWithoutCoordinator(run)) };
  });
  if (!found) return 1;
  const { run, status, why } = found;
  if (input.options["json"]) write(1, jsonLine({ run_id: run.run_id, status, why }));
  else if (why.length > 0) {
    const rows = why.map(({ demand, detail }): [string, string] => [printable(demand), printable(detail)]);
    write(1, `The run is ${status}:\n${columns(rows).join("\n")}\n`);
  } else {
    const consequence =
      status === "pending" ? "Nothing holds it back: it starts after the runs before it." : "It waits for nothing.";
    write(1, `The run is ${status}. ${consequence}\n`);
  }
  return 0;
}

/** The reasons that the record itself has. Everything else depends on the coordinator and its runners. */
function explainWithoutCoordinator({ status, parked_until, waiting_for }: Run): Waiting {
  if (status === "pending")
    return { status, why: [{ demand: "coordinator", detail: "No coordinator is running. Start one: drover up" }] };
  if (status !== "parked" && status !== "waiting") return { status, why: [] };
  const until =
    parked_until === null ? "It continues when somebody answers or resumes it." : `It continues at ${parked_until}.`;
  return { status, why: [{ demand: status, detail: `${waiting_for ?? "It waits for a person."} ${until}` }] };
}
