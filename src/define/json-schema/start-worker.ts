import { existsSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { workerMark } from "./protocol.ts";

const options = {
  workerData: workerMark,
  // A hostile schema may crash its worker, but not the process.
  resourceLimits: { maxOldGenerationSizeMb: 256, stackSizeMb: 2 },
  env: {},
  // Discard the output of the worker.
  stdout: true,
  stderr: true,
};

/** Starts the engine in its own thread, from its bundle in dist or from a bundle built on the spot. */
export async function startWorker(): Promise<Worker> {
  // A CommonJS bundle has only __dirname; the source tree has only import.meta.dirname.
  const directory = typeof __dirname === "string" ? __dirname : import.meta.dirname;
  const bundle = join(directory, "define-json-schema-engine.cjs");
  if (existsSync(bundle)) return new Worker(bundle, options);
  const { build } = await import("esbuild");
  const built = await build({
    entryPoints: [join(directory, "engine.ts")],
    bundle: true,
    platform: "node",
    format: "cjs",
    write: false,
    logLevel: "silent",
  });
  return new Worker(built.outputFiles[0]!.text, { ...options, eval: true });
}
