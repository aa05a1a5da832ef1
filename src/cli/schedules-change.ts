import { connectOrFail } from "./connect.ts";
import { findSchedule } from "./find-schedule.ts";
import { write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { timeIn } from "./schedule-times.ts";

const one = { takes: "SCHEDULE", arity: [1, 1], options: {} } as const;

export const schedulesRun: CommandSpec = {
  ...one,
  name: "schedules run",
  summary: "run a schedule now, whatever its times and its overlap policy say",
  examples: [["drover schedules run nightly", "prints the run's id"]],
  async run(input) {
    const client = await connectOrFail(input);
    const run = await client.schedules.run((await findSchedule(client, input.positionals[0]!)).schedule_id);
    write(1, input.options["json"] ? jsonLine(run) : `${run.run_id}\n`);
    if (!input.options["quiet"]) write(2, `Watch it: drover runs events ${run.run_id}\n`);
    return 0;
  },
};

export const schedulesEnable: CommandSpec = {
  ...one,
  name: "schedules enable",
  summary: "let a schedule fire again, from its next slot on",
  examples: [["drover schedules enable nightly", "slots that have passed are not made up for"]],
  run: (input) => setEnabled(input, true),
};

export const schedulesDisable: CommandSpec = {
  ...one,
  name: "schedules disable",
  summary: "skip the slots of a schedule; its history says so",
  examples: [["drover schedules disable nightly", "runs that are under way go on"]],
  run: (input) => setEnabled(input, false),
};

export const schedulesRemove: CommandSpec = {
  ...one,
  name: "schedules remove",
  summary: "end a schedule; its runs stay",
  examples: [["drover schedules remove nightly", "one that an agent defines is removed there"]],
  async run(input) {
    const client = await connectOrFail(input);
    const { schedule_id, name, agent_name } = await findSchedule(client, input.positionals[0]!);
    await client.schedules.remove(schedule_id);
    if (input.options["json"]) write(1, jsonLine({ schedule_id, removed: true }));
    else if (!input.options["quiet"]) write(2, `${agent_name}/${name} is removed.\n`);
    return 0;
  },
};

async function setEnabled(input: CommandInput, enabled: boolean): Promise<number> {
  const client = await connectOrFail(input);
  const { schedule_id } = await findSchedule(client, input.positionals[0]!);
  const schedule = await client.schedules.change(schedule_id, { enabled });
  if (input.options["json"]) write(1, jsonLine(schedule));
  else if (!input.options["quiet"]) {
    const [next] = schedule.next;
    const then = next === undefined ? "its slots are skipped" : `next: ${timeIn(next, schedule.timezone)}`;
    write(2, `${schedule.agent_name}/${schedule.name} is ${enabled ? "enabled" : "disabled"}; ${then}\n`);
  }
  return 0;
}
