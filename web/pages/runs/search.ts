import { runStatuses, type RunStatus } from "../../../src/model/states.ts";
import type { RunsFilter } from "../../data/queries.ts";

/** The filters as they stand in the address. */
export interface RunsSearch {
  status?: RunStatus[];
  agent?: string;
  /** In hours. */
  last?: number;
  session?: string;
  parent?: string;
  /** Words to be found in prompts, results and what tools were given. */
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
    // the router reads a number where the address has one
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
    // what has no word in it finds nothing and everything
    ...(search !== undefined && /[\p{L}\p{N}]/u.test(search) ? { search } : {}),
    ...(last === undefined ? {} : { since: since(last) }),
  };
}

/** To the minute, so that it stays the same while somebody looks. */
function since(hours: number): string {
  return new Date(Math.floor((Date.now() - hours * 3_600_000) / 60_000) * 60_000).toISOString();
}

export function hasFilter(search: RunsSearch): boolean {
  return Object.keys(search).length > 0;
}
