import type { Plugin } from "esbuild";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { HostError } from "../../model/errors.ts";
import type { Executor } from "../../model/executor.ts";
import type { StartCommand } from "../../model/process.ts";
import type { Environment } from "../../model/environment.ts";
import { withValidation } from "./with-validation.ts";
import { describeHosted, type HostedModule, runHosted } from "./host/run-hosted.ts";

export interface ModuleOptions {
  /** A `.js`, `.mjs` or `.ts` file, relative to the runner's directory. */
  module: string;
  runnerDirectory: string;
  /** Where compiled modules are stored. */
  cacheDirectory: string;
  config: Record<string, unknown>;
  start: StartCommand;
  env: Environment;
}

/** A module that takes longer than this to load is considered hung. */
const loadTimeoutMs = 30_000;

/**
 * Loads an executor from a file: its `executor` export, or the return value of its `createExecutor(config)`. Each run
 * gets its own process, because code that never settles or blocks its thread cannot be stopped otherwise.
 */
export async function loadModuleExecutor(options: ModuleOptions): Promise<Executor> {
  const file = resolve(options.runnerDirectory, options.module);
  if (!existsSync(file)) throw unusableModule(file, "the file does not exist");
  try {
    const { module, description } = await load(file, options);
    const { name, can, variables } = description;
    return await withValidation({
      name,
      can,
      ...(variables === undefined ? {} : { variables }),
      run: (invocation, context) => runHosted(module, name, invocation, context),
    });
  } catch (error) {
    throw unusableModule(file, error instanceof Error ? error.message : String(error), error);
  }
}

type Description = Pick<Executor, "name" | "can" | "variables">;

/**
 * Loads the file directly if Node can. Compiles TypeScript, and files that import `drover` without having it installed.
 */
async function load(file: string, options: ModuleOptions): Promise<{ module: HostedModule; description: Description }> {
  const { cacheDirectory, config } = options;
  const host = {
    executable: process.execPath,
    arguments: ["--enable-source-maps", await findHostProgram(cacheDirectory)],
  };
  const loadFrom = async (path: string): Promise<{ module: HostedModule; description: Description }> => {
    const module = { host, url: pathToFileURL(path).href, config };
    return { module, description: await describe(module, options) };
  };
  const compileFile = async (): Promise<string> => compile(file, cacheDirectory);
  if (file.endsWith(".ts")) return loadFrom(await compileFile());
  return loadFrom(file).catch(async (error: unknown) => {
    if (!isDroverMissing(error)) throw error;
    return loadFrom(await compileFile());
  });
}

async function describe(module: HostedModule, { start, env, runnerDirectory }: ModuleOptions): Promise<Description> {
  const running = start(
    { ...module.host, workingDirectory: runnerDirectory, timeoutMs: loadTimeoutMs },
    {
      stdin: "pipe",
      output: "both",
      graceMs: 100,
      parentEnvironment: env,
      environment: { mode: "inherit", allow: ["*"] },
    },
    new AbortController().signal,
  );
  return (await describeHosted(module, running)) as Description; // The host has checked it.
}

/** Node reports this before it runs any code of the module. */
function isDroverMissing(error: unknown): boolean {
  return error instanceof Error && /Cannot find package 'drover'/.test(error.message);
}

/** A CommonJS bundle has only __dirname; an ES module has only import.meta.dirname. */
const currentDirectory = (): string => (typeof __dirname === "string" ? __dirname : import.meta.dirname);

async function findHostProgram(cacheDirectory: string): Promise<string> {
  const built = join(currentDirectory(), "execute-executors-host-module-host.cjs");
  return existsSync(built) ? built : compile(join(currentDirectory(), "host", "module-host.ts"), cacheDirectory);
}

/** Names the output after a hash of the content, so that an outdated file is never loaded. */
async function compile(file: string, cacheDirectory: string): Promise<string> {
  const { build, version } = await import("esbuild");
  const hash = createHash("sha256")
    .update(version)
    .update("\0")
    .update(file)
    .update("\0")
    .update(await readFile(file));
  const outfile = join(cacheDirectory, `${hash.digest("hex").slice(0, 32)}.mjs`);
  await mkdir(cacheDirectory, { recursive: true, mode: 0o700 });
  // Always compile, because an imported file may have changed; it takes only milliseconds.
  const { outputFiles } = await build({
    entryPoints: [file],
    outfile,
    write: false,
    // Makes stack traces show lines of the original file.
    sourcemap: "inline",
    sourcesContent: false,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20.19",
    banner: {
      js: 'import { createRequire as drvRequire } from "node:module"; const require = drvRequire(import.meta.url);',
    },
    logLevel: "silent",
    plugins: [resolveDrover],
  });
  // Rename it into place, because another runner may be loading it.
  const temporary = `${outfile}.${process.pid}`;
  await writeFile(temporary, outputFiles[0]!.contents, { mode: 0o600 });
  await rename(temporary, outfile);
  return outfile;
}

/** Resolves `drover` to the Drover that loads the module, wherever the file is. */
const resolveDrover: Plugin = {
  name: "drover",
  setup(builder) {
    const built = join(currentDirectory(), "index.mjs");
    builder.onResolve({ filter: /^drover$/ }, () =>
      existsSync(built)
        ? { path: pathToFileURL(built).href, external: true }
        : { path: join(currentDirectory(), "..", "..", "index.ts") },
    );
  },
};

function unusableModule(file: string, reason: string, cause?: unknown): HostError {
  return new HostError({
    code: "DROVER-CFG-001",
    message: `The executor module ${file} cannot be used: ${reason}.`,
    field: "module",
    next: "Fix the file, or correct `module` in the profile.",
    ...(cause === undefined ? {} : { cause }),
  });
}
