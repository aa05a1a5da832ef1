import { connectOrFail } from "./connect.ts";
import { findSchedule } from "./find-schedule.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { formatTime } from "./schedule-times.ts";
import { toHintId } from "./short-ids.ts";
import { findDroverCommand } from "./drover-command.ts";

const commonSpec = { placeholders: "SCHEDULE", arity: [1, 1], options: {} } as const;

export const schedulesRun: CommandSpec = {
  ...commonSpec,
  name: "schedules run",
  summary: "run a schedule now, regardless of its times and overlap policy",
  examples: [["drover schedules run nightly", "prints the run's id"]],
  async run(input) {
    const client = await connectOrFail(input);
    const run = await client.schedules.run((await findSchedule(client, input.positionals[0]!)).schedule_id);
    write(1, input.options["json"] ? toJsonLine(run) : `${run.run_id}\n`);
    if (!input.options["quiet"]) write(2, `Watch it: ${findDroverCommand()} runs events ${toHintId(run.run_id)}\n`);
    return 0;
  },
};

export const schedulesEnable: CommandSpec = {
  ...commonSpec,
  name: "schedules enable",
  summary: "resume a disabled schedule from its next slot",
  examples: [["drover schedules enable nightly", "does not run missed slots"]],
  run: (input) => setEnabled(input, true),
};

export const schedulesDisable: CommandSpec = {
  ...commonSpec,
  name: "schedules disable",
  summary: "pause a schedule; its history lists the skipped slots",
  examples: [["drover schedules disable nightly", "active runs continue"]],
  run: (input) => setEnabled(input, false),
};

export const schedulesRemove: CommandSpec = {
  ...commonSpec,
  name: "schedules remove",
  summary: "delete a schedule; its runs are kept",
  examples: [["drover schedules remove nightly", "if its agent's file defines it, remove it there"]],
  async run(input) {
    const client = await connectOrFail(input);
    const { schedule_id, name, agent_name } = await findSchedule(client, input.positionals[0]!);
    await client.schedules.remove(schedule_id);
    if (input.options["json"]) write(1, toJsonLine({ schedule_id, removed: true }));
    else if (!input.options["quiet"]) write(2, `Removed ${agent_name}/${name}.\n`);
    return 0;
  },
};

async function setEnabled(input: CommandInput, enabled: boolean): Promise<number> {
  const client = await connectOrFail(input);
  const { schedule_id } = await findSchedule(client, input.positionals[0]!);
  const schedule = await client.schedules.change(schedule_id, { enabled });
  if (input.options["json"]) write(1, toJsonLine(schedule));
  else if (!input.options["quiet"]) {
    const [next] = schedule.next;
    const consequence = next === undefined ? "its slots are skipped" : `next: ${formatTime(next, schedule.timezone)}`;
    write(2, `${schedule.agent_name}/${schedule.name} is ${enabled ? "enabled" : "disabled"}; ${consequence}\n`);
  }
  return 0;
}
