import { scheduleDefinitionSchema } from "../../model/schedule.ts";
import { isRecord } from "../merge-keys.ts";
import { timingFaults } from "../timing-faults.ts";
import { note, type Source } from "./source.ts";

type Keys = Record<string, unknown>;

/** Converts the map of schedules to a list. Leaves out, with a note, triggers that are not schedules and schedules Drover would refuse. */
export function mapSchedules(value: unknown, source: Source): Keys {
  const mapped = Object.entries(isRecord(value) ? value : {}).flatMap(([name, schedule]) =>
    mapSchedule(name, isRecord(schedule) ? schedule : {}, source),
  );
  return mapped.length === 0 ? {} : { schedules: mapped };
}

function mapSchedule(name: string, schedule: Keys, source: Source): Keys[] {
  const { type, cron, expression, interval, prompt, enabled, resume_session, timezone, ...others } = schedule;
  const at = ["schedules", name];
  const when = cron ?? expression;
  if (when === undefined && interval === undefined) {
    const what = type === undefined ? "names neither cron nor interval" : `of type ${String(type)} has no equivalent`;
    note(source, at, `${what}; it was left out. Submit its runs with POST /runs`);
    return [];
  }
  for (const key of Object.keys(others)) note(source, [...at, key], "has no equivalent");
  const timing = when === undefined ? { every: String(interval).replaceAll(" ", "") } : { cron: when };
  const given = { name, ...timing, timezone, prompt: prompt ?? source.keys["default_prompt"], enabled, resume_session };
  const known = Object.fromEntries(Object.entries(given).filter(([, one]) => one !== undefined && one !== null));
  const parsed = scheduleDefinitionSchema.safeParse(known);
  const faults = parsed.success
    ? timingFaults(parsed.data, Date.now()).map(({ message }) => message)
    : parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  if (faults.length > 0) {
    note(source, at, `was left out: ${faults.join("; ")}`);
    return [];
  }
  if (when !== undefined && timezone === undefined)
    note(source, at, "is due in UTC: herdctl uses the timezone of its host. Add timezone to change that");
  if (resume_session === undefined)
    note(source, at, "starts a new session each time; add resume_session: true to continue the last one");
  return [known];
}
