import type { ApiClient } from "../wire/client.ts";
import { connect } from "./connect.ts";
import { withRecord } from "./with-record.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { explainLocation } from "./state.ts";
import { type Activity, readActivity } from "./read-activity.ts";
import { showStatus, type Status } from "./status-view.ts";

export const statusCommand: CommandSpec = {
  name: "status",
  summary: "show the coordinator of this directory, its runners, and running, waiting and failed runs",
  placeholders: "",
  arity: [0, 0],
  examples: [
    ["drover status", "exits with 0 if a coordinator serves, otherwise with 1"],
    ["drover status --json", "one JSON object"],
  ],
  options: {},
  run: runStatus,
};

async function runStatus(input: CommandInput): Promise<number> {
  const { client, project } = await connect(input);
  const isRemote = Boolean(input.env["DROVER_API_URL"]);
  const { locations } = project;
  const state = isRemote
    ? null
    : { directory: locations.stateDirectory, because: explainLocation(locations, input.env) };
  const status: Status = client
    ? {
        coordinator: await readCoordinator(client),
        state,
        activity: await readActivity(client, true),
      }
    : { coordinator: null, state, activity: await readRecordedActivity(input) };
  if (input.options["json"]) write(1, toJsonLine(status));
  else showStatus(status, { quiet: input.options["quiet"] === true });
  return status.coordinator === null ? 1 : 0;
}

async function readCoordinator(client: ApiClient): Promise<Status["coordinator"]> {
  const { subject, role, version, engine = null, started_at = null } = await client.me();
  return { url: client.url, version, engine, started_at, subject, role };
}

/** Reads the record without a coordinator. Prints no hint if the record is missing. */
function readRecordedActivity(input: CommandInput): Promise<Activity | null> {
  const quietInput: CommandInput = { ...input, options: { ...input.options, quiet: true } };
  return withRecord(quietInput, (client) => readActivity(client, false));
}
