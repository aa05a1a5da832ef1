import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Guard, Program } from "./guard.ts";
import { reservePort } from "../reserve-port.ts";
import { followLog } from "./log.ts";

export interface Launched {
  program: Program;
  port: number;
}

export interface LaunchOptions {
  /** The directory with `postgres`. */
  programDirectory: string;
  data: string;
  /** Any free port by default. */
  port?: number;
}

/** Only guards against hanging: a killed server first replays its log. */
const startTimeoutMs = 120_000;

/** Starts the server and waits until it accepts connections. */
export async function launch(guard: Guard, options: LaunchOptions): Promise<Launched> {
  for (const until = performance.now() + startTimeoutMs; ; await pause(100)) {
    const readLog = followLog(guard);
    const port = options.port ?? (await reservePort());
    const program = guard.run(join(options.programDirectory, "postgres"), "-D", options.data, "-p", String(port));
    while (program.ended === null && performance.now() < until) {
      if (program.pid !== null && isReady(options.data, program.pid)) return { program, port };
      await pause(10);
    }
    if (program.ended === null || performance.now() > until || !transient.test(readLog()))
      throw new Error(`PostgreSQL did not start in ${guard.directory} (${program.ended ?? "too slow"}):\n${readLog()}`);
  }
}

/** Another process has the port for now, or sessions of a killed server have not ended yet. */
const transient = /could not create any TCP\/IP sockets|pre-existing shared memory block/;

/** Reads the status file for pg_ctl. A killed server leaves the same file with another pid. */
function isReady(data: string, pid: number): boolean {
  const file = join(data, "postmaster.pid");
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  return lines[0] === String(pid) && lines[7]?.trim() === "ready";
}
