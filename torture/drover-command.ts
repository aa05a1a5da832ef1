import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Tools } from "./finding.ts";
import type { Child, Processes } from "./processes.ts";
import { waitFor } from "./wait.ts";

export interface CommandResult {
  code: number | null;
  output: string;
  ms: number;
  /** Peak memory. */
  megabytes: number;
}

/** Runs `drover WORDS` and waits for its exit. */
export async function drover(
  { processes, tools, cwd }: { processes: Processes; tools: Tools; cwd: string },
  env: Record<string, string>,
  ...args: string[]
): Promise<CommandResult> {
  const startedAt = performance.now();
  const child = processes.start([process.execPath, join(tools.root, "bin", "drover.js"), ...args, "--quiet"], {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: cwd, DROVER_TRUST: cwd, ...env },
  });
  let megabytes = 0;
  const hourMs = 3_600_000;
  await waitFor(async () => {
    megabytes = Math.max(megabytes, readPeakMemory(child));
    return child.alive ? null : true;
  }, hourMs);
  const { code } = await child.closed;
  return { code, output: child.output, ms: performance.now() - startedAt, megabytes };
}

/** Peak memory as reported by the kernel; 0 once the process has exited. */
function readPeakMemory({ pid }: Child): number {
  try {
    return Math.round(Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024);
  } catch {
    return 0; // It has just exited.
  }
}
