import { maxSearchTerms, parseSearchTerms } from "../model/search-terms.ts";
import { runStatuses } from "../model/states.ts";
import type { RunFilter } from "../model/store.ts";
import type { ApiClient } from "../wire/client.ts";
import type { Output } from "../wire/contracts.ts";
import { findRunId, findSession, resolveFilterId } from "./find-id.ts";
import { type OptionSpec, type ParsedOptions, readLimit, readText, usageError } from "./options.ts";
import { readTime, timeForms } from "./read-time.ts";

const idFilters = {
  "session-id": "runs of this session",
  "task-id": "runs for this task",
  "step-id": "runs for this step",
  "tool-call-id": "runs for this tool call",
  "worktree-id": "runs in this worktree",
  "repo-sha": "runs on this commit",
} as const;

/** The options of `drover runs list` that choose runs. */
export const filterOptions: Record<string, OptionSpec> = {
  search: { placeholder: "TEXT", description: 'words in prompt, result, error or tool input; "quotes" for a phrase' },
  status: {
    placeholder: "S",
    choices: runStatuses,
    severalChoices: true,
    description: `one of ${runStatuses.join(", ")}, or several separated by commas`,
  },
  agent: { placeholder: "NAME", description: "runs of this agent" },
  "parent-run-id": { placeholder: "ID", description: "child runs of this run" },
  ...Object.fromEntries(
    Object.entries(idFilters).map(([name, description]) => [name, { placeholder: "ID", description }]),
  ),
  since: { placeholder: "TIME", description: `only runs created since TIME: ${timeForms}` },
  until: { placeholder: "TIME", description: "only runs created before TIME, in the same forms" },
  limit: { placeholder: "N", description: "page size (default: 50, at most 1000)" },
  cursor: { placeholder: "C", description: "start at the cursor that the previous page printed" },
};

export type RunPage = Output<"GET /runs">;
export type ListedRun = RunPage["items"][number];
export type RunQuery = RunFilter & { limit: number; search?: string; cursor?: string };

export function readRunQuery(options: ParsedOptions): RunQuery {
  const query: RunQuery = { limit: readLimit(options, "runs list") };
  const search = readSearch(options);
  if (search !== undefined) query.search = search;
  const status = readText(options, "status");
  if (status) query.status = status.split(",").map(toStatus);
  const agent = readText(options, "agent");
  if (agent) query.agent_name = agent;
  for (const name of ["parent-run-id", ...Object.keys(idFilters)]) {
    const value = readText(options, name);
    // The option names are the filter's keys with dashes.
    if (value) query[name.replaceAll("-", "_") as "session_id"] = value;
  }
  for (const name of ["since", "until"] as const) {
    const time = readTime(options, name, "runs list");
    if (time) query[name] = time;
  }
  const cursor = readText(options, "cursor");
  if (cursor !== undefined) query.cursor = cursor;
  return query;
}

/** Replaces the shortened ids of runs and sessions in a query. */
export async function resolveIds(client: ApiClient, query: RunQuery): Promise<RunQuery> {
  const { parent_run_id, session_id } = query;
  const findSessionId = async (id: string): Promise<string> => (await findSession(client, id)).session_id;
  return {
    ...query,
    ...(parent_run_id && {
      parent_run_id: await resolveFilterId(parent_run_id, (id) => findRunId(client, id)),
    }),
    ...(session_id && { session_id: await resolveFilterId(session_id, findSessionId) }),
  };
}

function readSearch(options: ParsedOptions): string | undefined {
  const value = readText(options, "search");
  if (value === undefined) return undefined;
  const { length } = parseSearchTerms(value);
  if (length > 0 && length <= maxSearchTerms) return value;
  const problem = length === 0 ? "contains no words to search for" : `has more than ${maxSearchTerms} words`;
  throw usageError(`--search ${value} ${problem}.`, "runs list", "--search");
}

function toStatus(name: string) {
  const status = runStatuses.find((known) => known === name.trim());
  if (status) return status;
  throw usageError(`--status ${name} is not one of ${runStatuses.join(", ")}.`, "runs list", "--status");
}
