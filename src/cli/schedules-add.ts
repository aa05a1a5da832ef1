import { catchUpPolicies, overlapPolicies, type Schedule } from "../model/schedule.ts";
import type { ApiClient } from "../wire/client.ts";
import { createExampleOptions } from "./agent-help.ts";
import { connectOrFail } from "./connect.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readText, usageError } from "./options.ts";
import { readParameters } from "./run-parameters.ts";
import { getLocalTimezone, formatSlots } from "./schedule-times.ts";
import { isParameterError, withAgentCommand } from "./submit-run.ts";
import { findDroverCommand } from "./drover-command.ts";

export const schedulesAdd: CommandSpec = {
  name: "schedules add",
  summary: "run an agent on a schedule",
  placeholders: "AGENT NAME [--PARAMETER VALUE...]",
  arity: [2, 2],
  examples: [
    ['drover schedules add report nightly --cron "0 3 * * *"', "every night at 3:00 in your timezone"],
    [
      'drover schedules add claude triage --every 15m --prompt "Look at new issues" --resume-session',
      "all runs in one session",
    ],
  ],
  options: {
    cron: { placeholder: "EXPR", description: "minute, hour, day of month, month, weekday" },
    every: { placeholder: "TIME", description: "an interval such as 15m, starting now" },
    timezone: { placeholder: "TZ", description: "timezone of --cron (default: yours)" },
    prompt: { placeholder: "T", description: "the prompt" },
    params: {
      placeholder: "JSON",
      description: "parameters as a JSON object, including names that clash with options",
    },
    overlap: {
      placeholder: "WHAT",
      choices: overlapPolicies,
      description: `if the previous run is still active: ${overlapPolicies.join(", ")} (default: skip)`,
    },
    "catch-up": {
      placeholder: "WHAT",
      choices: catchUpPolicies,
      description: `after missed slots: ${catchUpPolicies.join(", ")} (default: none)`,
    },
    "resume-session": { description: "each run continues the session of the previous one" },
    attended: { description: "send its questions to the inbox" },
    disabled: { description: "add the schedule disabled" },
  },
  takesExtraOptions: true,
  run: addSchedule,
};

type Body = Parameters<ApiClient["schedules"]["create"]>[0];

async function addSchedule(input: CommandInput): Promise<number> {
  const { options, positionals, extraOptions } = input;
  const [agent_name, name] = positionals as [string, string]; // The arity is two.
  const [cron, every, prompt] = [readText(options, "cron"), readText(options, "every"), readText(options, "prompt")];
  if ((cron === undefined) === (every === undefined))
    throw usageError("Pass either --cron EXPR or --every TIME.", "schedules add", "--cron");
  const client = await connectOrFail(input);
  const schema = await findSchema(client, agent_name);
  const body: Body = {
    agent_name,
    name,
    ...(cron === undefined ? { every } : { cron }),
    timezone: readText(options, "timezone") ?? getLocalTimezone(),
    parameters: readParameters(extraOptions, readText(options, "params"), schema),
    enabled: options["disabled"] !== true,
    resume_session: options["resume-session"] === true,
    ...(prompt === undefined ? {} : { prompt }),
    ...(options["attended"] ? { attended: true } : {}),
    ...readChoice(options, "overlap", "overlap", overlapPolicies),
    ...readChoice(options, "catch-up", "catch_up", catchUpPolicies),
  };
  const schedule = await client.schedules.create(body).catch((error: unknown) => {
    throw isParameterError(error) ? withAgentCommand(error, agent_name, createExampleOptions(schema)) : error;
  });
  printAdded(schedule, input);
  return 0;
}

function printAdded(schedule: Schedule, { options }: CommandInput): void {
  write(1, options["json"] ? toJsonLine(schedule) : `${schedule.schedule_id}\n`);
  if (options["quiet"] || options["json"]) return;
  if (schedule.next.length === 0)
    write(2, `The schedule is disabled. Enable it: ${findDroverCommand()} schedules enable ${schedule.name}\n`);
  else write(2, `Next:\n${formatSlots(schedule.next, schedule.timezone).join("\n")}\n`);
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
  const value = readText(options, option);
  if (value === undefined) return {};
  const match = choices.find((choice) => choice === value);
  if (match === undefined)
    throw usageError(`--${option} ${value} is not one of ${choices.join(", ")}.`, "schedules add", `--${option}`);
  return { [key]: match };
}
