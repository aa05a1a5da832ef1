import { RequestError } from "../model/errors.ts";
import type { Schedule } from "../model/schedule.ts";
import { suggest } from "../model/suggest.ts";
import type { ApiClient } from "../wire/client.ts";

/** Every schedule that the caller may see. */
export async function allSchedules(client: ApiClient, agent_name?: string): Promise<Schedule[]> {
  const found: Schedule[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const filter = { ...(agent_name ? { agent_name } : {}), ...(cursor ? { cursor } : {}) };
    const page = await client.schedules.list({ limit: 1000, ...filter });
    found.push(...page.items);
    cursor = page.next_cursor;
  }
  return found;
}

/** Finds a schedule by name, by AGENT/NAME, or by its id or a prefix of it. */
export async function findSchedule(client: ApiClient, given: string): Promise<Schedule> {
  const all = await allSchedules(client);
  const named = all.filter(({ name, agent_name }) => given === name || given === `${agent_name}/${name}`);
  const matches = named.length > 0 ? named : all.filter(({ schedule_id }) => schedule_id.startsWith(given));
  const [only] = matches;
  if (only !== undefined && matches.length === 1) return only;
  const near = matches.length > 0 ? undefined : suggest(given, new Set(all.map(({ name }) => name)));
  throw new RequestError({
    code: "DROVER-USE-008",
    field: "SCHEDULE",
    message:
      matches.length > 0
        ? `More than one schedule matches ${given}: ${matches.map(describe).join(", ")}.`
        : `There is no schedule ${given}, or you have no access to it.${near ? ` Did you mean ${near}?` : ""}`,
    next:
      matches.length > 0 ? "Name it as AGENT/NAME or by its id." : "Run `drover schedules list` to see the schedules.",
  });
}

function describe({ agent_name, name, schedule_id }: Schedule): string {
  return `${agent_name}/${name} (${schedule_id})`;
}
