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
import { checkedExecutor } from "./checked-executor.ts";
import { describeHosted, type HostedModule, runHosted } from "./host/run-hosted.ts";

export interface ModuleOptions {
  /** A `.js`, `.mjs` or `.ts` file, relative to the runner's directory. */
  module: string;
  runnerDirectory: string;
  /** Holds compiled modules. */
  cacheDirectory: string;
  config: Record<string, unknown>;
  start: StartCommand;
  env: Environment;
}

/** A module that takes longer than this to load is considered hung. */
const loadMs = 30_000;

/**
 * Loads an executor from a file: its `executor` export, or the return value of its `createExecutor(config)`. Each run
 * gets its own process, because code that never settles or blocks its thread cannot be stopped otherwise.
 */
export async function loadModuleExecutor(options: ModuleOptions): Promise<Executor> {
  const file = resolve(options.runnerDirectory, options.module);
  if (!existsSync(file)) throw moduleFault(file, "there is no such file");
  try {
    const { module, described } = await load(file, options);
    const { name, can, variables } = described;
    return await checkedExecutor({
      name,
      can,
      ...(variables === undefined ? {} : { variables }),
      run: (invocation, context) => runHosted(module, name, invocation, context),
    });
  } catch (cause) {
    throw moduleFault(file, cause instanceof Error ? cause.message : String(cause), cause);
  }
}

type Described = Pick<Executor, "name" | "can" | "variables">;

/** Uses the file itself if Node can load it. Compiles a file that imports `drover` where no such package is installed. */
async function load(file: string, options: ModuleOptions): Promise<{ module: HostedModule; described: Described }> {
  const { cacheDirectory, config } = options;
  const host = {
    executable: process.execPath,
    arguments: ["--enable-source-maps", await hostProgram(cacheDirectory)],
  };
  const loadFrom = async (path: string): Promise<{ module: HostedModule; described: Described }> => {
    const module = { host, url: pathToFileURL(path).href, config };
    return { module, described: await describe(module, options) };
  };
  const compiled = async (): Promise<string> => compile(file, cacheDirectory);
  if (file.endsWith(".ts")) return loadFrom(await compiled());
  return loadFrom(file).catch(async (error: unknown) => {
    if (!lacksDrover(error)) throw error;
    return loadFrom(await compiled());
  });
}

async function describe(module: HostedModule, { start, env, runnerDirectory }: ModuleOptions): Promise<Described> {
  const running = start(
    { ...module.host, workingDirectory: runnerDirectory, timeoutMs: loadMs },
    {
      stdin: "pipe",
      output: "both",
      graceMs: 100,
      parentEnvironment: env,
      environment: { mode: "inherit", allow: ["*"] },
    },
    new AbortController().signal,
  );
  return (await describeHosted(module, running)) as Described; // checked by the host
}

/** Node reports this before it runs any code of the module. */
function lacksDrover(error: unknown): boolean {
  return error instanceof Error && /Cannot find package 'drover'/.test(error.message);
}

/** A CommonJS bundle has __dirname but no import.meta.dirname. The source tree has it the other way round. */
const here = (): string => (typeof __dirname === "string" ? __dirname : import.meta.dirname);

async function hostProgram(cacheDirectory: string): Promise<string> {
  const built = join(here(), "execute-executors-host-module-host.cjs");
  return existsSync(built) ? built : compile(join(here(), "host", "module-host.ts"), cacheDirectory);
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
  // always compile: an import may have changed, and it takes only milliseconds
  const { outputFiles } = await build({
    entryPoints: [file],
    outfile,
    write: false,
    // so that stack traces show lines of the original file
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
  // renamed into place, because another runner may be loading it
  const temporary = `${outfile}.${process.pid}`;
  await writeFile(temporary, outputFiles[0]!.contents, { mode: 0o600 });
  await rename(temporary, outfile);
  return outfile;
}

/** Resolves `drover` to the Drover that loads the module, wherever the file is. */
const resolveDrover: Plugin = {
  name: "drover",
  setup(builder) {
    const built = join(here(), "index.mjs");
    builder.onResolve({ filter: /^drover$/ }, () =>
      existsSync(built)
        ? { path: pathToFileURL(built).href, external: true }
        : { path: join(here(), "..", "..", "index.ts") },
    );
  },
};

function moduleFault(file: string, why: string, cause?: unknown): HostError {
  return new HostError({
    code: "DROVER-CFG-001",
    message: `The executor module ${file} cannot be used: ${why}.`,
    field: "module",
    next: "Fix the file, or the profile's `module`.",
    ...(cause === undefined ? {} : { cause }),
  });
}
