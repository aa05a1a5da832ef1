import type { Wanted } from "../embedded.ts";
import { HostError } from "../model/errors.ts";
import { connect } from "./connect.ts";
import { write } from "./io.ts";
import type { CommandInput } from "./options.ts";
import type { Work } from "./with-local-runner.ts";

/**
 * Works with the coordinator of this place, or where there is none with the record itself, opened by this process.
 * `report` gets what goes wrong beside the work.
 */
export async function withCoordinator(
  input: CommandInput,
  wanted: Wanted,
  work: Work,
  report = reportOnStderr,
): Promise<number> {
  const { client, local } = await connect(input);
  if (client) return work(client, false);
  if (input.env["DATABASE_URL"]) throw fleetHasItsOwn();
  // all that dispatches and executes: a command that has a coordinator does not wait for it to load
  const { withTrustedLocalRunner } = await import("./with-local-runner.ts");
  // a screen of its own has asked before it was opened
  return withTrustedLocalRunner(input, local, wanted, work, { tell: report, asks: report === reportOnStderr });
}

export function reportOnStderr(message: string): void {
  write(2, `drover: ${message}\n`);
}

/** A runner that is there for one command would be handed runs of the whole fleet, and end them when it ends itself. */
function fleetHasItsOwn(): HostError {
  return new HostError({
    code: "DROVER-API-023",
    field: "DATABASE_URL",
    message: "DATABASE_URL is set, so runs are for the coordinators of that database, and none was found.",
    next: "Name one with DROVER_API_URL and DROVER_API_KEY; or unset DATABASE_URL to run it here, on the record of the state directory.",
  });
}
