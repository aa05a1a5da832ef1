import { existsSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { workerMark } from "./protocol.ts";

const options = {
  workerData: workerMark,
  // a hostile schema ends its worker, never the process
  resourceLimits: { maxOldGenerationSizeMb: 256, stackSizeMb: 2 },
  env: {},
  // nothing that runs in it has anything to say
  stdout: true,
  stderr: true,
};

/** The engine in a thread of its own: its bundle in dist, or its source made into one on the spot. */
export async function startWorker(): Promise<Worker> {
  // A CommonJS bundle has __dirname and no import.meta.dirname; the source tree has it the other way round.
  const here = typeof __dirname === "string" ? __dirname : import.meta.dirname;
  const bundle = join(here, "define-json-schema-engine.cjs");
  if (existsSync(bundle)) return new Worker(bundle, options);
  const { build } = await import("esbuild");
  const built = await build({
    entryPoints: [join(here, "engine.ts")],
    bundle: true,
    platform: "node",
    format: "cjs",
    write: false,
    logLevel: "silent",
  });
  return new Worker(built.outputFiles[0]!.text, { ...options, eval: true });
}
