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

export const spans: readonly { hours: number; word: string }[] = [
  { hours: 1, word: "hour" },
  { hours: 24, word: "24 hours" },
  { hours: 168, word: "7 days" },
  { hours: 720, word: "30 days" },
];

export function readSearch(given: Record<string, unknown>): RunsSearch {
  const search: RunsSearch = {};
  const listed = typeof given["status"] === "string" ? given["status"].split(",") : given["status"];
  const status = runStatuses.filter((one) => Array.isArray(listed) && listed.includes(one));
  if (status.length > 0) search.status = status;
  for (const name of ["agent", "session", "parent", "search"] as const) {
    const value = given[name];
    // The router parses numeric values as numbers.
    if ((typeof value === "string" && value !== "") || typeof value === "number") search[name] = String(value);
  }
  const last = Number(given["last"]);
  if (spans.some(({ hours }) => hours === last)) search.last = last;
  return search;
}

export function toFilter({ status, agent, last, session, parent, search }: RunsSearch): RunsFilter {
  return {
    ...(status ? { status } : {}),
    ...(agent === undefined ? {} : { agent_name: agent }),
    ...(session === undefined ? {} : { session_id: session }),
    ...(parent === undefined ? {} : { parent_run_id: parent }),
    // Text without a word cannot be searched for.
    ...(search !== undefined && /[\p{L}\p{N}]/u.test(search) ? { search } : {}),
    ...(last === undefined ? {} : { since: since(last) }),
  };
}

/** Rounded to the minute, so that the query key stays stable. */
function since(hours: number): string {
  return new Date(Math.floor((Date.now() - hours * 3_600_000) / 60_000) * 60_000).toISOString();
}

export function hasFilter(search: RunsSearch): boolean {
  return Object.keys(search).length > 0;
}
