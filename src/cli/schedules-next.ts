import { createSlotTimesFactory } from "../define/slot-times.ts";
import { checkTiming } from "../define/check-timing.ts";
import { RequestError } from "../model/errors.ts";
import type { Timing } from "../model/schedule.ts";
import { connectOrFail } from "./connect.ts";
import { findSchedule } from "./find-schedule.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readText, usageError } from "./options.ts";
import { getLocalTimezone, formatSlots } from "./schedule-times.ts";

export const schedulesNext: CommandSpec = {
  name: "schedules next",
  summary: "preview the next times of a schedule, in its timezone and in yours",
  placeholders: "[SCHEDULE]",
  arity: [0, 1],
  examples: [
    ["drover schedules next nightly", "for an existing schedule"],
    ['drover schedules next --cron "30 2 * * *" --timezone Europe/Berlin', "for an expression; needs no coordinator"],
  ],
  options: {
    cron: { placeholder: "EXPR", description: "minute, hour, day of month, month, weekday" },
    every: { placeholder: "TIME", description: "an interval such as 15m, starting now" },
    timezone: { placeholder: "TZ", description: "timezone of --cron (default: yours)" },
  },
  run: showNext,
};

async function showNext(input: CommandInput): Promise<number> {
  const { options, positionals } = input;
  const [scheduleArgument] = positionals;
  const [cron, every] = [readText(options, "cron"), readText(options, "every")];
  if ([scheduleArgument, cron, every].filter((source) => source !== undefined).length !== 1)
    throw usageError("Specify a schedule, or pass --cron or --every.", "schedules next", "SCHEDULE");
  const { next, timezone } =
    scheduleArgument === undefined
      ? preview({ timezone: readText(options, "timezone") ?? getLocalTimezone(), ...(cron ? { cron } : { every }) })
      : await findSchedule(await connectOrFail(input), scheduleArgument);
  if (options["json"]) write(1, toJsonLine({ timezone, next }));
  else if (next.length > 0) write(1, `${formatSlots(next, timezone).join("\n")}\n`);
  else
    write(
      2,
      `The schedule is disabled, so it has no next run. To enable it: drover schedules enable ${scheduleArgument}\n`,
    );
  return 0;
}

function preview(timing: Timing): { next: string[]; timezone: string } {
  requireTiming(timing, "schedules next");
  const now = Date.now();
  const times = createSlotTimesFactory()(timing, now);
  const next: string[] = [];
  for (let time = times.next(now); time !== null && next.length < 5; time = times.next(time))
    next.push(new Date(time).toISOString());
  return { next, timezone: timing.timezone };
}

/** Reports the same faults as the coordinator. */
function requireTiming(timing: Timing, command: string): void {
  if (timing.every !== undefined && !/^[1-9]\d{0,8}[smhd]$/.test(timing.every))
    throw usageError(`--every ${timing.every} is not an interval such as 15m, 2h or 1d.`, command, "--every");
  const [fault] = checkTiming(timing, Date.now());
  if (fault === undefined) return;
  const { path, message, next } = fault;
  throw new RequestError({ code: "DROVER-SCH-001", field: `--${path}`, message, next });
}
