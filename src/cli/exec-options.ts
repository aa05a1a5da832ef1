import { type Config, maxOutputKb } from "../model/config.ts";
import { RequestError } from "../model/errors.ts";
import type { Correlation } from "../model/execution.ts";
import {
  type CaptureOptions,
  environmentModes,
  isolationLevels,
  type Limits,
  type StartOptions,
} from "../model/process.ts";
import {
  type CommandInput,
  readList,
  type OptionSpec,
  type ParsedOptions,
  readSeconds,
  readText,
  usageError,
} from "./options.ts";

export const execOptions: Record<string, OptionSpec> = {
  timeout: {
    placeholder: "S",
    description: "stop the command after S seconds (default: 300; drover.yaml: execution.default_timeout_seconds)",
  },
  cwd: { placeholder: "DIR", description: "run in this directory" },
  env: { placeholder: "K=V", repeat: true, description: "set a variable (repeatable)" },
  "env-mode": {
    placeholder: "MODE",
    choices: ["inherit", "merge", "replace"],
    description: "how to combine --env with Drover's own environment: inherit (default), merge or replace",
  },
  shell: { description: "always run the command through /bin/sh -c" },
  "no-shell": { description: "never use a shell" },
  isolation: {
    placeholder: "L",
    choices: ["auto", "none", "group", "pid", "sandbox"],
    description: "auto (default), none, group, pid or sandbox",
  },
  limit: {
    placeholder: "N=V",
    repeat: true,
    description:
      "set a limit (repeatable): cpu=S, memory=BYTES, processes=N, open-files=N or file-size=BYTES; disk=BYTES and files=N limit the growth of the working directory (suffixes k, m, g)",
  },
  capture: {
    placeholder: "MODE",
    choices: ["both", "merged", "none", "file"],
    description:
      "how to capture stdout and stderr: both separately (default), merged, none, or file (only to a file, as with --spill)",
  },
  "max-output-kb": {
    placeholder: "KB",
    description: "how much of each stream to keep, as head and tail (default: 1024, at most 65536)",
  },
  "output-limit": {
    placeholder: "WHAT",
    choices: ["truncate", "fail"],
    description: "when a stream exceeds max-output-kb: truncate (default) or fail",
  },
  spill: { description: "also write the full output, redacted, to logs/ in the state directory" },
  leftovers: {
    placeholder: "WHAT",
    choices: ["kill", "keep"],
    description: "kill (default) or keep processes that outlive the command",
  },
  "run-id": { placeholder: "ID", description: "the run this command is part of (default: DROVER_RUN_ID)" },
  "session-id": {
    placeholder: "ID",
    description: "the session this command is part of; inherited, like the ids below",
  },
  "task-id": { placeholder: "ID", description: "the caller's task" },
  "step-id": { placeholder: "ID", description: "the step of that task" },
  "tool-call-id": { placeholder: "ID", description: "the tool call that started the command" },
  "worktree-id": { placeholder: "ID", description: "the worktree the command runs in" },
  "repo-sha": {
    placeholder: "SHA",
    description: "the commit it runs on (default: inherited within the same repository, otherwise HEAD)",
  },
};

export function readTimeoutMs(options: ParsedOptions, config: Config): number {
  return (readSeconds(options, "timeout") ?? config.execution.default_timeout_seconds) * 1000;
}

export function readStartOptions(options: ParsedOptions, config: Config, env: CommandInput["env"]): StartOptions {
  return {
    isolation: readChoice(options, "isolation", ["auto", ...isolationLevels], config.isolation),
    environment: {
      ...config.execution.environment,
      mode: readChoice(options, "env-mode", environmentModes, config.execution.environment.mode),
    },
    parentEnvironment: env,
    stdin: "inherit",
    leftovers: readChoice(options, "leftovers", ["kill", "keep"] as const, "kill"),
  };
}

export function readCapture(options: ParsedOptions, config: Config): CaptureOptions {
  return {
    mode: readChoice(options, "capture", ["both", "merged", "none", "file"] as const, "both"),
    maxBytes: readWholeNumber(options, "max-output-kb", maxOutputKb, config.execution.max_output_kb) * 1024,
    onLimit: readChoice(options, "output-limit", ["truncate", "fail"] as const, config.execution.output_limit),
  };
}

export function readUseShell(options: ParsedOptions, config: Config): "auto" | boolean {
  if (options["shell"] && options["no-shell"])
    throw usageError("--shell and --no-shell cannot be used together.", "exec", "--shell");
  return options["shell"] ? true : options["no-shell"] ? false : config.execution.use_shell;
}

export function readEnvironment(options: ParsedOptions): Record<string, string> {
  const pairs = readList(options, "env").map((pair): [string, string] => {
    const equals = pair.indexOf("=");
    if (equals > 0) return [pair.slice(0, equals), pair.slice(equals + 1)];
    throw new RequestError({
      code: "DROVER-USE-009",
      field: "--env",
      message: `--env ${pair} is not in the form NAME=VALUE.`,
      next: "Write it like --env NODE_ENV=test.",
    });
  });
  return Object.fromEntries(pairs);
}

/** `repo_sha` comes from the option only. Whether it is inherited depends on the repository, which is checked later. */
export function readCorrelation(
  options: ParsedOptions,
  env: CommandInput["env"],
): Correlation & { run_id: string | null } {
  const readId = (name: string): string | null =>
    readText(options, name) || env[`DROVER_${name.replaceAll("-", "_").toUpperCase()}`] || null;
  return {
    run_id: readId("run-id"),
    session_id: readId("session-id"),
    task_id: readId("task-id"),
    step_id: readId("step-id"),
    tool_call_id: readId("tool-call-id"),
    worktree_id: readId("worktree-id"),
    repo_sha: readText(options, "repo-sha") || null,
  };
}

const limitNames = {
  cpu: "cpuSeconds",
  memory: "memoryBytes",
  processes: "processes",
  "open-files": "openFiles",
  "file-size": "fileSizeBytes",
  disk: "diskBytes",
  files: "files",
} as const satisfies Record<string, keyof Limits>;

export function readLimits(options: ParsedOptions): Limits {
  const limits: Limits = {};
  for (const argument of readList(options, "limit")) {
    const [name = "", ...values] = argument.split("=");
    const value = values.join("=");
    const number = /^(\d+)([kmg]?)$/i.exec(value);
    if (!Object.hasOwn(limitNames, name) || !number) {
      throw new RequestError({
        code: "DROVER-USE-010",
        field: "--limit",
        message: `--limit ${argument} is not in the form NAME=NUMBER, where NAME is one of ${Object.keys(limitNames).join(", ")}.`,
        next: "Write it like --limit memory=512m or --limit cpu=10.",
      });
    }
    const unit = { "": 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 }[number[2]!.toLowerCase()] ?? 1;
    // `hasOwn` has just checked the name.
    limits[limitNames[name as keyof typeof limitNames]] = Number(number[1]) * unit;
  }
  return limits;
}

function readChoice<const T extends string>(
  options: ParsedOptions,
  name: string,
  choices: readonly T[],
  fallback: T,
): T {
  const value = readText(options, name);
  if (value === undefined) return fallback;
  const match = choices.find((allowed) => allowed === value);
  if (match) return match;
  throw usageError(`--${name} ${value} is not one of ${choices.join(", ")}.`, "exec", `--${name}`);
}

function readWholeNumber(options: ParsedOptions, name: string, max: number, fallback: number): number {
  const value = readText(options, name);
  if (value === undefined) return fallback;
  if (/^[1-9]\d{0,9}$/.test(value) && Number(value) <= max) return Number(value);
  throw usageError(`--${name} ${value} is not a whole number from 1 to ${max}.`, "exec", `--${name}`);
}
