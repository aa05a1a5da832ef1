import { join } from "node:path";
import type { LoadedProfile } from "./define/profiles.ts";
import { createCommandExecutor } from "./execute/executors/command.ts";
import { loadModuleExecutor } from "./execute/executors/module.ts";
import { createProceduralExecutor } from "./execute/executors/procedural/procedural.ts";
import type { LazySchemas } from "./lazy-schemas.ts";
import { RequestError } from "./model/errors.ts";
import type { Executor } from "./model/executor.ts";
import type { Isolation, Redactor, StartCommand } from "./model/process.ts";
import type { Profile } from "./model/profile.ts";
import { start } from "./process/start.ts";

/** Executors that a profile may name without a command or a module. */
export const builtInExecutors = ["procedural", "claude", "codex", "gemini", "code-review"] as const;

export interface ExecutorPlace {
  stateDirectory: string;
  env: Readonly<Record<string, string | undefined>>;
  maxOutputKb: number;
  start?: StartCommand;
}

/** The executor that a profile names. */
export async function executorFor(
  { profile, directory, name }: LoadedProfile,
  options: ExecutorPlace,
  redactor: Redactor,
  schemas: LazySchemas,
): Promise<Executor> {
  const place = { runnerDirectory: directory, variables: { allowed: profile.allow_env, env: options.env } };
  if (profile.command !== undefined)
    return createCommandExecutor({ ...place, name: profile.type, command: profile.command });
  if (profile.module !== undefined) {
    const cacheDirectory = join(options.stateDirectory, "cache", "modules");
    return loadModuleExecutor({
      module: profile.module,
      runnerDirectory: directory,
      cacheDirectory,
      config: profile.config,
    });
  }
  if (profile.type === "procedural")
    return createProceduralExecutor({
      ...place,
      redactor,
      maxOutputBytes: options.maxOutputKb * 1024,
      checkOutput: schemas.check,
    });
  const { clientExecutors } = await import("./execute/executors/clients/index.ts");
  const client = clientExecutors[profile.type];
  if (client)
    return client({
      env: options.env,
      isRoot: process.getuid?.() === 0,
      isolation: () => isolationHere(profile, options.start ?? start),
    });
  throw new RequestError({
    code: "DROVER-CFG-004",
    message: `The profile ${name} names the executor ${profile.type}, which is not built in.`,
    field: "type",
    next: `Give it a command or a module, or one of: ${builtInExecutors.join(", ")}.`,
  });
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
