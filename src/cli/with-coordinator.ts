import type { EmbeddedTarget } from "../embedded.ts";
import { HostError } from "../model/errors.ts";
import { connect } from "./connect.ts";
import { write } from "./io.ts";
import type { CommandInput } from "./options.ts";
import type { Work } from "./with-local-runner.ts";

/**
 * Calls `work` with a client of the coordinator. Without a coordinator this process opens the record itself and starts a
 * runner for the duration of the command. `report` receives problems that do not fail the command.
 */
export async function withCoordinator(
  input: CommandInput,
  target: EmbeddedTarget,
  work: Work,
  report = reportOnStderr,
): Promise<number> {
  const { client, project } = await connect(input);
  if (client) return work(client, false);
  if (input.env["DROVER_NESTED_LOG"] && !input.env["DROVER_API_URL"]) throw noAddressInsideRun();
  if (input.env["DATABASE_URL"]) throw fleetNeedsCoordinator();
  // Import this only now: a command with a coordinator does not need the code that dispatches and executes runs.
  const { withTrustedLocalRunner } = await import("./with-local-runner.ts");
  // A full-screen chat has already asked about trust, before it opened its screen.
  return withTrustedLocalRunner(input, project, target, work, { print: report, mayPrompt: report === reportOnStderr });
}

export function reportOnStderr(message: string): void {
  write(2, `drover: ${message}\n`);
}

/** The record belongs to the Drover process that started the run, so this process cannot open it. */
function noAddressInsideRun(): HostError {
  return new HostError({
    code: "DROVER-API-023",
    field: "DROVER_API_URL",
    message: "This command is inside a run whose runner gave it no address of the coordinator (DROVER_API_URL).",
    next: "Start the runner with DROVER_COMMANDS_URL set to the coordinator's http:// or https:// address.",
  });
}

/** A runner that lives for one command would get runs of the whole fleet and stop them when the command ends. */
function fleetNeedsCoordinator(): HostError {
  return new HostError({
    code: "DROVER-API-023",
    field: "DATABASE_URL",
    message: "DATABASE_URL is set, so a coordinator of that database must handle the run, and none was found.",
    next: "Set DROVER_API_URL and DROVER_API_KEY to use a coordinator, or unset DATABASE_URL to use the record in the state directory.",
  });
}
