import type { Schedule, Slot } from "../model/schedule.ts";
import { toStatusCell } from "./cells.ts";
import { connectOrFail } from "./connect.ts";
import { listAllSchedules, findSchedule } from "./find-schedule.ts";
import { formatColumns } from "./help.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readText } from "./options.ts";
import { formatSlots, formatTime } from "./schedule-times.ts";
import { type Cell, formatAge, replaceControlCharacters, writeTable } from "./table.ts";
import { findDroverCommand } from "./drover-command.ts";

export const schedulesList: CommandSpec = {
  name: "schedules list",
  summary: "list schedules with their next and last run",
  placeholders: "",
  arity: [0, 0],
  examples: [
    ["drover schedules", "all schedules, the next one to run first"],
    ["drover schedules list --agent report --json", "the schedules of one agent, as JSON lines"],
  ],
  options: { agent: { placeholder: "NAME", description: "only schedules of this agent" } },
  run: listSchedules,
};

export const schedulesShow: CommandSpec = {
  name: "schedules show",
  summary: "show one schedule with its next runs and its history",
  placeholders: "SCHEDULE",
  arity: [1, 1],
  examples: [
    ["drover schedules show nightly", "by name, AGENT/NAME, or the beginning or end of its id"],
    ["drover schedules show nightly --limit 100 --json", "with more history, as one JSON object"],
  ],
  options: { limit: { placeholder: "N", description: "how many history entries (default: 10, at most 1000)" } },
  run: showSchedule,
};

async function listSchedules(input: CommandInput): Promise<number> {
  const { options } = input;
  const schedules = await listAllSchedules(await connectOrFail(input), readText(options, "agent"));
  const items = schedules.toSorted((a, b) => ((a.next[0] ?? "~") < (b.next[0] ?? "~") ? -1 : 1));
  if (options["json"]) for (const schedule of items) write(1, toJsonLine(schedule));
  else if (items.length > 0)
    writeTable(
      ["NAME", "AGENT", "WHEN", "NEXT", "LAST", "RUN", "ID"],
      items.map((schedule) => toCells(schedule, new Date())),
      ["RUN"],
    );
  else if (!options["quiet"])
    write(2, `No schedules yet. Add one: ${findDroverCommand()} schedules add AGENT NAME --cron "0 3 * * *"\n`);
  return 0;
}

function toCells(schedule: Schedule, now: Date): Cell[] {
  const { name, agent_name, timezone, enabled, next, last, schedule_id } = schedule;
  return [
    name,
    agent_name,
    toUntruncatedCell(describeTiming(schedule)),
    !enabled ? toStatusCell("disabled") : next[0] === undefined ? "never" : toSlotCell(next[0], timezone, now),
    last === null ? "-" : toSlotCell(last.slot, timezone, now, describeOutcome(last)),
    last?.run_id ? { id: last.run_id } : "-",
    { id: schedule_id },
  ];
}

function toUntruncatedCell(value: string): Cell {
  return { shown: value, piped: value };
}

/** Creates a cell for a slot and its outcome. The time is relative on a terminal, and in the schedule's timezone in a pipe. */
function toSlotCell(slot: string, timezone: string, now: Date, outcome = ""): Cell {
  return {
    shown: `${outcome === "" && Date.parse(slot) <= now.getTime() ? "now" : formatAge(slot, now)} ${outcome}`.trimEnd(),
    piped: `${formatTime(slot, timezone)} ${outcome}`.trimEnd(),
  };
}

async function showSchedule(input: CommandInput): Promise<number> {
  const client = await connectOrFail(input);
  const schedule = await findSchedule(client, input.positionals[0]!);
  const limit = Number(readText(input.options, "limit") ?? 10);
  const { items: history } = await client.schedules.history(schedule.schedule_id, { limit });
  if (input.options["json"]) {
    write(1, toJsonLine({ ...schedule, history }));
    return 0;
  }
  const rows: [string, string | null][] = [
    ["id", schedule.schedule_id],
    ["name", schedule.name],
    ["agent", schedule.agent_name],
    ["when", describeTiming(schedule)],
    ["enabled", schedule.enabled ? "yes" : "no"],
    ["overlap", schedule.overlap],
    ["catch up", schedule.catch_up],
    ["session", schedule.resume_session ? (schedule.session_id ?? "continued by each run") : null],
    ["prompt", schedule.prompt],
    ["parameters", Object.keys(schedule.parameters).length > 0 ? JSON.stringify(schedule.parameters) : null],
    ["defined by", { file: "the agent's file", agent: "the agent", api: null }[schedule.source]],
    ["owner", schedule.created_by],
  ];
  const visibleRows = rows.flatMap(([name, value]): [string, string][] =>
    value ? [[name, replaceControlCharacters(value)]] : [],
  );
  write(1, `${formatColumns(visibleRows).join("\n")}\n`);
  if (schedule.next.length > 0) write(1, `\nnext\n${formatSlots(schedule.next, schedule.timezone).join("\n")}\n`);
  if (history.length === 0) return 0;
  const lines = history.map((slot): [string, string] => [
    formatTime(slot.slot, schedule.timezone),
    replaceControlCharacters([describeOutcome(slot), slot.run_id, slot.detail].filter(Boolean).join("  ")),
  ]);
  write(1, `\nhistory\n${formatColumns(lines).join("\n")}\n`);
  return 0;
}

function describeTiming({ cron, every, timezone }: Schedule): string {
  return cron === null ? `every ${every}` : `${cron} ${timezone}`;
}

/** Describes the status of the slot's run, or why the slot was skipped. */
function describeOutcome({ outcome, why, manual, run_status, run_reason }: Slot): string {
  if (outcome === "skipped") return `skipped: ${why}`;
  const status = run_status ?? "submitted (its run has been deleted)";
  return `${status}${run_reason ? ` (${run_reason})` : ""}${manual ? ", started manually" : ""}`;
}
