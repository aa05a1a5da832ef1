import { runStatuses, type RunStatus } from "../../../src/model/states.ts";
import type { RunsFilter } from "../../data/queries.ts";

/** The filters as stored in the URL. */
export interface RunsSearch {
  status?: RunStatus[];
  agent?: string;
  /** The time range in hours. */
  last?: number;
  session?: string;
  parent?: string;
  /** Words to find in prompts, results and tool input. */
  search?: string;
}

export const timeRanges: readonly { hours: number; label: string }[] = [
  { hours: 1, label: "hour" },
  { hours: 24, label: "24 hours" },
  { hours: 168, label: "7 days" },
  { hours: 720, label: "30 days" },
];

export function readRunsSearch(params: Record<string, unknown>): RunsSearch {
  const search: RunsSearch = {};
  const requested = typeof params["status"] === "string" ? params["status"].split(",") : params["status"];
  const statuses = runStatuses.filter((status) => Array.isArray(requested) && requested.includes(status));
  if (statuses.length > 0) search.status = statuses;
  for (const name of ["agent", "session", "parent", "search"] as const) {
    const value = params[name];
    // The router parses numeric values as numbers.
    if ((typeof value === "string" && value !== "") || typeof value === "number") search[name] = String(value);
  }
  const last = Number(params["last"]);
  if (timeRanges.some(({ hours }) => hours === last)) search.last = last;
  return search;
}

export function toFilter({ status, agent, last, session, parent, search }: RunsSearch): RunsFilter {
  return {
    ...(status ? { status } : {}),
    ...(agent === undefined ? {} : { agent_name: agent }),
    ...(session === undefined ? {} : { session_id: session }),
    ...(parent === undefined ? {} : { parent_run_id: parent }),
    // The coordinator cannot search for text without letters or digits.
    ...(search !== undefined && /[\p{L}\p{N}]/u.test(search) ? { search } : {}),
    ...(last === undefined ? {} : { since: getStartOfRange(last) }),
  };
}

/** The start of the time range, rounded to the minute so that the query key stays stable. */
function getStartOfRange(hours: number): string {
  return new Date(Math.floor((Date.now() - hours * 3_600_000) / 60_000) * 60_000).toISOString();
}

export function hasFilter(search: RunsSearch): boolean {
  return Object.keys(search).length > 0;
}
