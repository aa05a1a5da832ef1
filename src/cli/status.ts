import type { Question } from "../model/question.ts";
import type { RunRow } from "../model/store.ts";
import type { RunStatus } from "../model/states.ts";
import type { ApiClient } from "../wire/client.ts";
import type { Output } from "../wire/contracts.ts";
import { connect } from "./connect.ts";
import { withHistory } from "./history.ts";
import { write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { locationReason } from "./state.ts";
import { showStatus } from "./status-view.ts";

export const statusCommand: CommandSpec = {
  name: "status",
  summary: "show what serves this directory, its runners, and what runs, waits or failed",
  takes: "",
  arity: [0, 0],
  examples: [
    ["drover status", "exits with 0 if a coordinator serves, otherwise with 1"],
    ["drover status --json", "one JSON object"],
  ],
  options: {},
  run: runStatus,
};

/** The latest runs of one kind, and how many there are. */
export interface RunGroup<T = RunRow> {
  items: T[];
  count: number;
}

export type PendingRun = RunRow & { why: Output<"GET /runs/{run_id}/why">["why"] };

export interface Activity {
  runners: Output<"GET /runners">["items"];
  running: RunGroup;
  pending: RunGroup<PendingRun>;
  questions: RunGroup<Question>;
  parked: RunGroup;
  /** Runs that failed in the last 24 hours. */
  failed: RunGroup;
}

export interface Status {
  /** null if no coordinator serves. */
  coordinator: {
    url: string;
    version: string;
    engine: "sqlite" | "postgres" | null;
    started_at: string | null;
    subject: string;
    role: string;
  } | null;
  /** null if the coordinator was named by DROVER_API_URL: its state is on its own machine. */
  state: { directory: string; because: string } | null;
  /** null if there is no record. */
  activity: Activity | null;
}

/** How many runs of each kind are listed. */
const maxListed = 5;

async function runStatus(input: CommandInput): Promise<number> {
  const { client, local } = await connect(input);
  const isRemote = Boolean(input.env["DROVER_API_URL"]);
  const { locations } = local;
  const state = isRemote
    ? null
    : { directory: locations.stateDirectory, because: locationReason(locations, input.env) };
  const status: Status = client
    ? {
        coordinator: await readCoordinator(client),
        state,
        activity: await readActivity(client, true),
      }
    : { coordinator: null, state, activity: await readRecordedActivity(input) };
  if (input.options["json"]) write(1, jsonLine(status));
  else showStatus(status, { quiet: input.options["quiet"] === true });
  return status.coordinator === null ? 1 : 0;
}

async function readCoordinator(client: ApiClient): Promise<Status["coordinator"]> {
  const { subject, role, version, engine = null, started_at = null } = await client.me();
  return { url: client.url, version, engine, started_at, subject, role };
}

/** Reads the record without a coordinator. A missing record is not worth a hint here. */
function readRecordedActivity(input: CommandInput): Promise<Activity | null> {
  const quiet: CommandInput = { ...input, options: { ...input.options, quiet: true } };
  return withHistory(quiet, (client) => readActivity(client, false));
}

async function readActivity(client: ApiClient, isLive: boolean): Promise<Activity> {
  const since = new Date(Date.now() - 24 * 3_600_000).toISOString();
  const list = async (status: RunStatus[]): Promise<RunGroup> =>
    toGroup((await client.runs.list({ status, limit: 1000 })).items);
  const [runners, running, pending, questions, parked, failed] = await Promise.all([
    client.runners.list(),
    list(["claimed", "running", "stopping"]),
    list(["pending"]),
    client.questions.list({ open: true, limit: maxListed }),
    list(["parked"]),
    client.runs.list({ status: ["failed"], since, limit: 1000 }),
  ]);
  return {
    runners: runners.items,
    running,
    pending: { ...pending, items: await explainPending(client, pending.items, isLive) },
    questions: { items: questions.items, count: questions.count ?? questions.items.length },
    parked,
    failed: toGroup(failed.items),
  };
}

function toGroup(rows: readonly RunRow[]): RunGroup {
  return { items: rows.slice(0, maxListed), count: rows.length };
}

/** Only a coordinator knows why a run is pending. */
function explainPending(client: ApiClient, rows: readonly RunRow[], isLive: boolean): Promise<PendingRun[]> {
  return Promise.all(rows.map(async (row) => ({ ...row, why: isLive ? (await client.runs.why(row.run_id)).why : [] })));
}
