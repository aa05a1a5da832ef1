import { existsSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";

export interface Thread {
  /** The thread's source file, relative to `src/`. */
  entry: string;
  /** Identifies the worker. Other threads that load the same file must not act as the worker. */
  name: string;
  maxMemoryMb: number;
}

/** Starts a worker thread from its bundle in `dist`, or from a bundle built on the spot. */
export async function startThread({ entry, name, maxMemoryMb }: Thread): Promise<Worker> {
  const options = {
    workerData: name,
    // Hostile input may crash the thread, but not the process.
    resourceLimits: { maxOldGenerationSizeMb: maxMemoryMb, stackSizeMb: 2 },
    env: {},
    // Discard the output of the thread.
    stdout: true,
    stderr: true,
  };
  // A CommonJS bundle has only __dirname; the source tree has only import.meta.dirname.
  const directory = typeof __dirname === "string" ? __dirname : import.meta.dirname;
  const bundle = join(directory, `${entry.replace(/\.ts$/, "").replaceAll("/", "-")}.cjs`);
  if (existsSync(bundle)) return new Worker(bundle, options);
  const { build } = await import("esbuild");
  const built = await build({
    entryPoints: [join(directory, "..", entry)],
    bundle: true,
    platform: "node",
    format: "cjs",
    write: false,
    logLevel: "silent",
  });
  return new Worker(built.outputFiles[0]!.text, { ...options, eval: true });
}
