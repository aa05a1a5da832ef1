import { HostError } from "../model/errors.ts";
import { connect } from "./connect.ts";
import type { CommandInput } from "./options.ts";
import { directoryOfSession } from "./session-directory.ts";
import type { Work } from "./with-own.ts";

/**
 * Works with the coordinator that is there, or with one that lives as long as this command: that one and its runner
 * are as if started where the session lies that is to go on.
 */
export async function withCoordinator(input: CommandInput, work: Work, session?: string): Promise<number> {
  const { client, local } = await connect(input);
  if (client) return work(client);
  if (input.env["DATABASE_URL"]) throw fleetHasItsOwn();
  const there = session === undefined ? null : await directoryOfSession(local, session);
  // all that serves and carries out: whoever has a coordinator need not wait for it to be loaded
  const { withOwn } = await import("./with-own.ts");
  return withOwn(there === null ? input : { ...input, cwd: there }, local, work);
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
