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
  /** The folder with `postgres`. */
  programs: string;
  data: string;
  /** Any free one unless given. */
  port?: number;
}

/** Against hanging only: a server that was killed first does again what it had not written. */
const patienceMs = 120_000;

/** Starts the server and waits until it takes connections. */
export async function launch(guard: Guard, options: LaunchOptions): Promise<Launched> {
  for (const until = performance.now() + patienceMs; ; await pause(100)) {
    const heard = followLog(guard);
    const port = options.port ?? (await reservePort());
    const program = guard.run(join(options.programs, "postgres"), "-D", options.data, "-p", String(port));
    while (program.ended === null && performance.now() < until) {
      if (program.pid !== null && isReady(options.data, program.pid)) return { program, port };
      await pause(10);
    }
    if (program.ended === null || performance.now() > until || !passing.test(heard()))
      throw new Error(`PostgreSQL did not start in ${guard.folder} (${program.ended ?? "too slow"}):\n${heard()}`);
  }
}

/** Another process has the port for now, or sessions of a server that was killed have not noticed yet. */
const passing = /could not create any TCP\/IP sockets|pre-existing shared memory block/;

/** By what it writes for pg_ctl; a server that was killed has left the same, under another pid. */
function isReady(data: string, pid: number): boolean {
  const file = join(data, "postmaster.pid");
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  return lines[0] === String(pid) && lines[7]?.trim() === "ready";
}
