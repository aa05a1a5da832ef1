import { spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { findOrdinaryUser } from "./user.mjs";

/** A process that runs PostgreSQL's programs in their own directory, and stops and removes everything when we exit. */
export interface Guard {
  readonly directory: string;
  /** Runs one program at a time. Its output is appended to the file `log` in the directory. */
  run(program: string, ...args: string[]): Program;
  /** Signals the running program, if any. */
  signal(signal: NodeJS.Signals): void;
  /** Stops the running program and removes the directory. */
  end(): Promise<void>;
}

/** Poll it: waiting for an event would not keep this process alive. */
export interface Program {
  readonly pid: number | null;
  /** How it ended, such as `exit 1` or `SIGKILL`; null while it runs. */
  readonly ended: string | null;
}

type GuardMessage = { directory: string } | { started: number } | { ended: string };

/** `home` is the directory of guard-process.mjs. */
export async function openGuard(home: string): Promise<Guard> {
  const user = findOrdinaryUser();
  const child = spawn(
    process.execPath,
    [join(home, "guard-process.mjs"), ...(user ? [String(user.uid), String(user.gid)] : [])],
    // Ctrl-C is for us: the server lasts until we are done with it.
    { cwd: "/", detached: true, stdio: ["ignore", "ignore", "inherit", "ipc"] },
  );
  const guard: { directory: string | null; ended: string | null } = { directory: null, ended: null };
  let program: { pid: number | null; ended: string | null } = { pid: null, ended: "never ran" };
  child.on("message", (message: GuardMessage) => {
    if ("directory" in message) guard.directory = message.directory;
    else if ("started" in message) program.pid = message.started;
    else program.ended = message.ended;
  });
  const leave = (how: string): void => {
    guard.ended = how;
    program.ended ??= `its guard ended: ${how}`;
  };
  // May be emitted more than once if messages are sent to a guard that has just died.
  child.on("error", (error) => leave(error.message));
  child.once("exit", (code, signal) => leave(signal ?? `exit ${code}`));
  // A process that forgets to stop its server can still exit.
  child.unref();
  child.channel?.unref();

  while (guard.directory === null) {
    if (guard.ended !== null) throw new Error(`PostgreSQL's guard did not start: ${guard.ended}`);
    await pause(5);
  }
  return {
    directory: guard.directory,
    run(...command) {
      program = { pid: null, ended: guard.ended };
      if (child.connected) child.send({ run: command });
      return program;
    },
    signal(signal) {
      if (child.connected) child.send({ signal });
    },
    async end() {
      if (child.connected) child.disconnect();
      while (guard.ended === null) await pause(5);
    },
  };
}
