import type { Input } from "../../../src/wire/contracts.ts";
import type { Api } from "../../data/client.ts";
import type { Schedule, Timing } from "../../data/queries.ts";

/** A schedule in the form. Keeps both kinds of timing, so that switching between them loses nothing. */
export interface Draft {
  agent_name: string;
  name: string;
  kind: "cron" | "every";
  cron: string;
  every: string;
  timezone: string;
  prompt: string;
  parameters: Record<string, unknown>;
  overlap: Schedule["overlap"];
  catch_up: Schedule["catch_up"];
  resume_session: boolean;
  attended: boolean | null;
  enabled: boolean;
}

const defaults = { cron: "0 3 * * *", every: "1h" };

export function toDraft(schedule: Schedule | null, agent_name: string, browserZone: string): Draft {
  if (schedule === null)
    return {
      agent_name,
      name: "",
      kind: "cron",
      ...defaults,
      timezone: browserZone,
      prompt: "",
      parameters: {},
      overlap: "skip",
      catch_up: "none",
      resume_session: false,
      attended: null,
      enabled: true,
    };
  const { cron, every, prompt, ...unchanged } = schedule;
  return {
    ...unchanged,
    kind: every === null ? "cron" : "every",
    cron: cron ?? defaults.cron,
    every: every ?? defaults.every,
    prompt: prompt ?? "",
  };
}

/** Returns the timing of a draft, or null while none has been entered. */
export function toTiming({ kind, cron, every, timezone }: Draft): Timing | null {
  const text = (kind === "cron" ? cron : every).trim();
  if (text === "" || timezone.trim() === "") return null;
  return kind === "cron" ? { cron: text, timezone: timezone.trim() } : { every: text, timezone: timezone.trim() };
}

export function isSameTiming(schedule: Schedule, { cron, every, timezone }: Timing): boolean {
  return schedule.cron === (cron ?? null) && schedule.every === (every ?? null) && schedule.timezone === timezone;
}

/** Creates the schedule, or sends only the changed fields so that concurrent changes to others are kept. */
export function saveDraft(api: Api, schedule: Schedule | null, draft: Draft): Promise<Schedule> {
  const fields = toFields(draft);
  if (schedule === null) {
    const { prompt, attended, ...rest } = fields;
    return api.schedules.create({
      agent_name: draft.agent_name,
      ...rest,
      ...(prompt === null ? {} : { prompt }),
      ...(attended === null ? {} : { attended }),
    });
  }
  const changes = Object.fromEntries(
    Object.entries(fields).filter(
      ([key, value]) => JSON.stringify(value) !== JSON.stringify(schedule[key as keyof Schedule]),
    ),
  ) as Input<"PATCH /schedules/{schedule_id}">["body"];
  return Object.keys(changes).length === 0
    ? Promise.resolve(schedule)
    : api.schedules.change(schedule.schedule_id, changes);
}

function toFields(draft: Draft) {
  const { name, kind, parameters, overlap, catch_up, resume_session, attended, enabled } = draft;
  return {
    name: name.trim(),
    // Send empty values too, because the coordinator validates them.
    ...(kind === "cron" ? { cron: draft.cron.trim() } : { every: draft.every.trim() }),
    timezone: draft.timezone.trim(),
    prompt: draft.prompt === "" ? null : draft.prompt,
    parameters,
    overlap,
    catch_up,
    resume_session,
    attended,
    enabled,
  };
}

export const presets: readonly { label: string; cron: string }[] = [
  { label: "Hourly", cron: "0 * * * *" },
  { label: "Nightly at 3:00", cron: "0 3 * * *" },
  { label: "Weekdays at 9:00", cron: "0 9 * * 1-5" },
  { label: "Mondays at 9:00", cron: "0 9 * * 1" },
  { label: "First of the month", cron: "0 9 1 * *" },
];
