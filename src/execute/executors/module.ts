import type { Plugin } from "esbuild";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { HostError } from "../../model/errors.ts";
import type { Executor } from "../../model/executor.ts";
import { checkedExecutor } from "./checked-executor.ts";

export interface ModuleOptions {
  /** `.js`, `.mjs`, or `.ts`; seen from the runner's directory. */
  module: string;
  runnerDirectory: string;
  /** Where compiled modules are kept. */
  cacheDirectory: string;
  config: Record<string, unknown>;
}

/** An executor from a file: its `executor` export, or what its `createExecutor(config)` makes. */
export async function loadModuleExecutor(options: ModuleOptions): Promise<Executor> {
  const file = resolve(options.runnerDirectory, options.module);
  if (!existsSync(file)) throw moduleFault(file, "there is no such file");
  const imported = await load(file, options.cacheDirectory);
  const create = Reflect.get(imported, "createExecutor") as unknown;
  const executor: unknown =
    typeof create === "function"
      ? await (create as (config: unknown) => unknown)(options.config)
      : Reflect.get(imported, "executor");
  if (!isExecutor(executor)) throw moduleFault(file, wrongExport(imported));
  return checkedExecutor(executor);
}

/** As it stands where Node can load it; a file that imports `drover` from where there is none is compiled with ours. */
async function load(file: string, cacheDirectory: string): Promise<object> {
  try {
    if (file.endsWith(".ts")) return await importFile(await compile(file, cacheDirectory));
    return await importFile(file).catch(async (error: unknown) => {
      if (!lacksDrover(error)) throw error;
      return importFile(await compile(file, cacheDirectory));
    });
  } catch (cause) {
    throw moduleFault(file, cause instanceof Error ? cause.message : String(cause), cause);
  }
}

async function importFile(path: string): Promise<object> {
  return (await import(pathToFileURL(path).href)) as object; // a module's exports are an object
}

/** Found out before anything of it was run. */
function lacksDrover(error: unknown): boolean {
  return error instanceof Error && /Cannot find package 'drover'|Failed to load url drover\b/.test(error.message);
}

/** By content, so that a changed file is compiled anew and an old one never loaded in its place. */
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
  // always: what it imports may have changed as well, and compiling takes milliseconds
  const { outputFiles } = await build({
    entryPoints: [file],
    outfile,
    write: false,
    // so that a trace names lines of the file that a person wrote
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
    plugins: [ourselves],
  });
  // in one move: another runner may load it at this moment
  const fresh = `${outfile}.${process.pid}`;
  await writeFile(fresh, outputFiles[0]!.contents, { mode: 0o600 });
  await rename(fresh, outfile);
  process.setSourceMapsEnabled(true);
  return outfile;
}

/** `drover` is the Drover that loads the module, wherever the file lies. */
const ourselves: Plugin = {
  name: "drover",
  setup(builder) {
    // A CommonJS bundle has __dirname and no import.meta.dirname; the source tree has it the other way round.
    const here = typeof __dirname === "string" ? __dirname : import.meta.dirname;
    const built = join(here, "index.mjs");
    builder.onResolve({ filter: /^drover$/ }, () =>
      existsSync(built)
        ? { path: pathToFileURL(built).href, external: true }
        : { path: join(here, "..", "..", "index.ts") },
    );
  },
};

function isExecutor(value: unknown): value is Executor {
  if (typeof value !== "object" || value === null) return false;
  return (
    typeof Reflect.get(value, "name") === "string" &&
    typeof Reflect.get(value, "can") === "object" &&
    typeof Reflect.get(value, "run") === "function"
  );
}

function wrongExport(imported: object): string {
  const names = Object.keys(imported);
  const found = names.length === 0 ? "nothing" : names.join(", ");
  return `it must export \`executor\`, which is what \`defineExecutor({ name, execute })\` returns, or a function \`createExecutor(config)\` that returns the same; it exports ${found}`;
}

function moduleFault(file: string, why: string, cause?: unknown): HostError {
  return new HostError({
    code: "DROVER-CFG-001",
    message: `The executor module ${file} cannot be used: ${why}.`,
    field: "module",
    next: "Mend the file, or the profile's `module`.",
    ...(cause === undefined ? {} : { cause }),
  });
}
