import { RequestError } from "../model/errors.ts";
import type { Schedule } from "../model/schedule.ts";
import { suggest } from "../model/suggest.ts";
import type { ApiClient } from "../wire/client.ts";
import { findNewestOwn, minQueryLength, newestKeyword } from "./find-id.ts";

/** Lists every schedule that the caller may see. */
export async function listAllSchedules(client: ApiClient, agent_name?: string): Promise<Schedule[]> {
  const schedules: Schedule[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const filter = { ...(agent_name ? { agent_name } : {}), ...(cursor ? { cursor } : {}) };
    const page = await client.schedules.list({ limit: 1000, ...filter });
    schedules.push(...page.items);
    cursor = page.next_cursor;
  }
  return schedules;
}

/** Finds a schedule by name, by AGENT/NAME, by its id, by the beginning or the end of its id, or as `last`. */
export async function findSchedule(client: ApiClient, query: string): Promise<Schedule> {
  const schedules = await listAllSchedules(client);
  const nameMatches = schedules.filter(({ name, agent_name }) => query === name || query === `${agent_name}/${name}`);
  const matches =
    nameMatches.length > 0
      ? nameMatches
      : schedules.filter(
          ({ schedule_id: id }) => query.length >= minQueryLength && (id.startsWith(query) || id.endsWith(query)),
        );
  if (query === newestKeyword && matches.length === 0)
    return findNewestOwn(client, "schedule", schedules.toSorted(compareNewestFirst), ({ created_by }) => created_by);
  const [match] = matches;
  if (match !== undefined && matches.length === 1) return match;
  const suggestion = matches.length > 0 ? undefined : suggest(query, new Set(schedules.map(({ name }) => name)));
  throw new RequestError({
    code: "DROVER-USE-008",
    field: "SCHEDULE",
    message:
      matches.length > 0
        ? `More than one schedule matches ${query}: ${matches.map(describe).join(", ")}.`
        : `Unknown schedule: ${query}. It does not exist, or you have no access to it.${suggestion ? ` Did you mean ${suggestion}?` : ""}`,
    next:
      matches.length > 0
        ? "Specify it as AGENT/NAME or by its id."
        : "Run `drover schedules list` to see the schedules.",
  });
}

/** Sorts the newest schedule first, because ids start with the time of creation. */
function compareNewestFirst(a: Schedule, b: Schedule): number {
  return a.schedule_id < b.schedule_id ? 1 : -1;
}

function describe({ agent_name, name, schedule_id }: Schedule): string {
  return `${agent_name}/${name} (${schedule_id})`;
}
