import { randomFillSync } from "node:crypto";
import { basename } from "node:path";
import type { LoadedProfile } from "../define/profiles.ts";
import { createCommandExecutor } from "../execute/executors/command-executor.ts";
import { loadModuleExecutor } from "../execute/executors/module-executor.ts";
import { createProceduralExecutor } from "../execute/executors/procedural/procedural.ts";
import type { LazySchemas } from "./lazy-schemas.ts";
import { RequestError } from "../model/errors.ts";
import type { Executor } from "../model/executor.ts";
import { createIds } from "../model/ids.ts";
import type { InProcessOptions } from "../model/in-process-options.ts";
import type { Isolation, Redactor, StartCommand } from "../model/process.ts";
import type { Profile } from "../model/profile.ts";
import { splitWords } from "../model/split-words.ts";
import { moduleCacheDirectory } from "../model/state-layout.ts";
import type { Environment } from "../model/environment.ts";

/** Set by the bundler. */
declare const DROVER_VERSION: string;

/** Executors that a profile can use without a command or a module. */
export const builtInExecutors = [
  "procedural",
  "claude",
  "codex",
  "gemini",
  "code-review",
  "model",
  "claude-sdk",
] as const;

export interface ExecutorOptions {
  stateDirectory: string;
  env: Environment;
  maxOutputKb: number;
  /** The setting `provider` of drover.yaml. */
  provider?: string | null;
  /** For the executor `claude-sdk`, if the runner is inside a caller's process. */
  inProcess?: InProcessOptions;
  start: StartCommand;
}

/** Creates the executor of a profile. */
export async function createExecutor(
  { profile, directory, name }: LoadedProfile,
  options: ExecutorOptions,
  redactor: Redactor,
  schemas: LazySchemas,
): Promise<Executor> {
  const base = { runnerDirectory: directory, variables: { allowed: profile.allow_env, env: options.env } };
  const createProcedural = (): Executor =>
    createProceduralExecutor({
      ...base,
      redactor,
      maxOutputBytes: options.maxOutputKb * 1024,
      checkOutput: schemas.check,
    });
  // Run the agent's command from this process. If the wrapper program ran it, the record would not contain it.
  if (profile.command !== undefined && isProceduralExec(profile.command))
    return { ...createProcedural(), name: profile.type };
  if (profile.command !== undefined)
    return createCommandExecutor({
      ...base,
      name: profile.type,
      command: profile.command,
      can: profile.can,
    });
  if (profile.module !== undefined) {
    const cacheDirectory = moduleCacheDirectory(options.stateDirectory);
    return loadModuleExecutor({
      module: profile.module,
      runnerDirectory: directory,
      cacheDirectory,
      config: profile.config,
      start: options.start,
      env: options.env,
    });
  }
  if (profile.type === "procedural") return createProcedural();
  if (profile.type === "model") {
    const { createModelExecutor } = await import("../execute/executors/loop/model-executor.ts");
    return createModelExecutor({
      env: options.env,
      ...(options.provider ? { named: { config: options.provider } } : {}),
      version: DROVER_VERSION,
      checkInput: schemas.check,
      newId: createIds(Date.now, (bytes) => void randomFillSync(bytes)),
    });
  }
  const host = {
    env: options.env,
    isRoot: process.getuid?.() === 0,
    isolation: () => detectIsolation(profile, options.start),
  };
  if (profile.type === "claude-sdk") {
    const { createClaudeSdkExecutor } = await import("../execute/executors/claude-sdk/claude-sdk.ts");
    return createClaudeSdkExecutor({ ...host, ...options.inProcess });
  }
  const { clientExecutors } = await import("../execute/executors/clients/index.ts");
  const client = clientExecutors[profile.type];
  if (client) return client(host);
  throw new RequestError({
    code: "DROVER-CFG-004",
    message: `The profile ${name} uses the executor ${profile.type}, which is not built in.`,
    field: "type",
    next: `Set a command or a module in the profile, or set type to one of: ${builtInExecutors.join(", ")}.`,
  });
}

/** Whether a command is the program that wraps the procedural executor. */
export function isProceduralExec(command: string): boolean {
  const split = splitWords(command);
  return split.ok && split.words.length === 1 && basename(split.words[0]!) === "drover-procedural-exec";
}

/** Runs a command to find out which level `auto` selects. */
async function detectIsolation(
  { isolation = "auto", leftovers }: Profile,
  startCommand: StartCommand,
): Promise<Isolation> {
  if (isolation !== "auto") return isolation;
  const probe = startCommand(
    { executable: "true" },
    { isolation, output: "none", stdin: "none", ...(leftovers === undefined ? {} : { leftovers }) },
    new AbortController().signal,
  );
  return (await probe.result).isolation ?? "none";
}
