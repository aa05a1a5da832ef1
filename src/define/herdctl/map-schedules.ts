import { scheduleDefinitionSchema } from "../../model/schedule.ts";
import { isRecord } from "../merge-keys.ts";
import { checkTiming } from "../check-timing.ts";
import { note, type Source } from "./source.ts";

type Keys = Record<string, unknown>;

/** Converts the map of schedules to a list. Skips, with a note, triggers that are not schedules and invalid schedules. */
export function mapSchedules(value: unknown, source: Source): Keys {
  const mapped = Object.entries(isRecord(value) ? value : {}).flatMap(([name, schedule]) =>
    mapSchedule(name, isRecord(schedule) ? schedule : {}, source),
  );
  return mapped.length === 0 ? {} : { schedules: mapped };
}

function mapSchedule(name: string, schedule: Keys, source: Source): Keys[] {
  const { type, cron, expression, interval, prompt, enabled, resume_session, timezone, ...others } = schedule;
  const path = ["schedules", name];
  const cronExpression = cron ?? expression;
  if (cronExpression === undefined && interval === undefined) {
    const problem = type === undefined ? "has neither cron nor interval" : `of type ${String(type)} has no equivalent`;
    note(source, path, `${problem}; it was skipped. Submit its runs with POST /runs`);
    return [];
  }
  for (const key of Object.keys(others)) note(source, [...path, key], "has no equivalent");
  const timing =
    cronExpression === undefined ? { every: String(interval).replaceAll(" ", "") } : { cron: cronExpression };
  const fields = {
    name,
    ...timing,
    timezone,
    prompt: prompt ?? source.keys["default_prompt"],
    enabled,
    resume_session,
  };
  const mapped = Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null),
  );
  const parsed = scheduleDefinitionSchema.safeParse(mapped);
  const faults = parsed.success
    ? checkTiming(parsed.data, Date.now()).map(({ message }) => message)
    : parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`);
  if (faults.length > 0) {
    note(source, path, `was skipped: ${faults.join("; ")}`);
    return [];
  }
  if (cronExpression !== undefined && timezone === undefined)
    note(source, path, "runs in UTC, but herdctl uses the timezone of its host. Add timezone to change that");
  if (resume_session === undefined)
    note(source, path, "starts a new session each time; add resume_session: true to continue the last one");
  return [mapped];
}
