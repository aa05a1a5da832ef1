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

/** Executors that a profile may name without a command or a module. */
export const builtInExecutors = [
  "procedural",
  "claude",
  "codex",
  "gemini",
  "code-review",
  "model",
  "claude-sdk",
] as const;

export interface ExecutorPlace {
  stateDirectory: string;
  env: Environment;
  maxOutputKb: number;
  /** `provider` of drover.yaml. */
  provider?: string | null;
  /** For the executor `claude-sdk`, of a runner that lives in the process of a caller. */
  inProcess?: InProcessOptions;
  start: StartCommand;
}

/** The executor that a profile names. */
export async function createExecutor(
  { profile, directory, name }: LoadedProfile,
  options: ExecutorPlace,
  redactor: Redactor,
  schemas: LazySchemas,
): Promise<Executor> {
  const place = { runnerDirectory: directory, variables: { allowed: profile.allow_env, env: options.env } };
  const procedural = (): Executor =>
    createProceduralExecutor({
      ...place,
      redactor,
      maxOutputBytes: options.maxOutputKb * 1024,
      checkOutput: schemas.check,
    });
  // carried out here: through the wrapper, the command itself would not be on the record
  if (profile.command !== undefined && isProceduralExec(profile.command))
    return { ...procedural(), name: profile.type };
  if (profile.command !== undefined)
    return createCommandExecutor({
      ...place,
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
  if (profile.type === "procedural") return procedural();
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
    isolation: () => isolationHere(profile, options.start),
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
    message: `The profile ${name} names the executor ${profile.type}, which is not built in.`,
    field: "type",
    next: `Give it a command or a module, or one of: ${builtInExecutors.join(", ")}.`,
  });
}

/** Whether a profile names the procedural executor by the program that wraps it. */
export function isProceduralExec(command: string): boolean {
  const split = splitWords(command);
  return split.ok && split.words.length === 1 && basename(split.words[0]!) === "drover-procedural-exec";
}

/** As a command shows that is run with it. */
async function isolationHere(
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
