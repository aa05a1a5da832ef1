import { catchUpPolicies, overlapPolicies, type Schedule } from "../model/schedule.ts";
import type { ApiClient } from "../wire/client.ts";
import { exampleOptions } from "./agent-help.ts";
import { connectOrFail } from "./connect.ts";
import { write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, text, usage } from "./options.ts";
import { readParameters } from "./run-parameters.ts";
import { localTimezone, slotLines } from "./schedule-times.ts";
import { isParameterError, withAgentCommand } from "./submit-run.ts";
import { droverCommand } from "./drover-command.ts";

export const schedulesAdd: CommandSpec = {
  name: "schedules add",
  summary: "run an agent on a schedule",
  takes: "AGENT NAME [--PARAMETER VALUE...]",
  arity: [2, 2],
  examples: [
    ['drover schedules add report nightly --cron "0 3 * * *"', "every night at 3:00 in your timezone"],
    [
      'drover schedules add claude triage --every 15m --prompt "Look at new issues" --resume-session',
      "all runs in one session",
    ],
  ],
  options: {
    cron: { value: "EXPR", about: "minute, hour, day of month, month, weekday" },
    every: { value: "TIME", about: "an interval such as 15m, starting now" },
    timezone: { value: "TZ", about: "timezone of --cron (default: yours)" },
    prompt: { value: "T", about: "the prompt" },
    params: { value: "JSON", about: "parameters as a JSON object, including names that clash with options" },
    overlap: {
      value: "WHAT",
      choices: overlapPolicies,
      about: `if the previous run is still active: ${overlapPolicies.join(", ")} (default skip)`,
    },
    "catch-up": {
      value: "WHAT",
      choices: catchUpPolicies,
      about: `after missed slots: ${catchUpPolicies.join(", ")} (default none)`,
    },
    "resume-session": { about: "each run continues the session of the previous one" },
    attended: { about: "send its questions to the inbox" },
    disabled: { about: "add the schedule disabled" },
  },
  takesExtraOptions: true,
  run: addSchedule,
};

type Body = Parameters<ApiClient["schedules"]["create"]>[0];

async function addSchedule(input: CommandInput): Promise<number> {
  const { options, positionals, extraOptions } = input;
  const [agent_name, name] = positionals as [string, string]; // safe: the arity is two
  const [cron, every, prompt] = [text(options, "cron"), text(options, "every"), text(options, "prompt")];
  if ((cron === undefined) === (every === undefined))
    throw usage("Pass either --cron EXPR or --every TIME.", "schedules add", "--cron");
  const client = await connectOrFail(input);
  const schema = await findSchema(client, agent_name);
  const body: Body = {
    agent_name,
    name,
    ...(cron === undefined ? { every } : { cron }),
    timezone: text(options, "timezone") ?? localTimezone(),
    parameters: readParameters(extraOptions, text(options, "params"), schema),
    enabled: options["disabled"] !== true,
    resume_session: options["resume-session"] === true,
    ...(prompt === undefined ? {} : { prompt }),
    ...(options["attended"] ? { attended: true } : {}),
    ...readChoice(options, "overlap", "overlap", overlapPolicies),
    ...readChoice(options, "catch-up", "catch_up", catchUpPolicies),
  };
  const schedule = await client.schedules.create(body).catch((error: unknown) => {
    throw isParameterError(error) ? withAgentCommand(error, agent_name, exampleOptions(schema)) : error;
  });
  printAdded(schedule, input);
  return 0;
}

function printAdded(schedule: Schedule, { options }: CommandInput): void {
  write(1, options["json"] ? jsonLine(schedule) : `${schedule.schedule_id}\n`);
  if (options["quiet"] || options["json"]) return;
  if (schedule.next.length === 0)
    write(2, `The schedule is disabled. Enable it: ${droverCommand()} schedules enable ${schedule.name}\n`);
  else write(2, `Next:\n${slotLines(schedule.next, schedule.timezone).join("\n")}\n`);
}

/** Returns undefined for an unknown agent, which the coordinator refuses with a suggestion. */
async function findSchema(client: ApiClient, agent_name: string): Promise<Record<string, unknown> | undefined> {
  const { items } = await client.agents.list();
  return items.find(({ name }) => name === agent_name.split("@")[0])?.parameters_schema;
}

function readChoice<T extends string>(
  options: CommandInput["options"],
  option: string,
  key: string,
  choices: readonly T[],
): Record<string, T> {
  const value = text(options, option);
  if (value === undefined) return {};
  const match = choices.find((choice) => choice === value);
  if (match === undefined)
    throw usage(`--${option} ${value} is not one of ${choices.join(", ")}.`, "schedules add", `--${option}`);
  return { [key]: match };
}
