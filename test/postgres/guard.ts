import { spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ordinaryUser } from "./user.mjs";

/** A process that runs PostgreSQL's programs in a folder of their own, and ends all of that when we end. */
export interface Guard {
  readonly folder: string;
  /** One program at a time; what it prints is added to the file `log` of the folder. */
  run(program: string, ...words: string[]): Program;
  /** To the program that runs, if one does. */
  signal(signal: NodeJS.Signals): void;
  /** Ends what runs, and removes the folder. */
  end(): Promise<void>;
}

/** To be looked at again and again: waiting for an event would not keep this process alive. */
export interface Program {
  readonly pid: number | null;
  /** How, for people: `exit 1`, `SIGKILL`; null while it runs. */
  readonly ended: string | null;
}

type Told = { folder: string } | { started: number } | { ended: string };

/** `home`: where guard-process.mjs lies. */
export async function openGuard(home: string): Promise<Guard> {
  const user = ordinaryUser();
  const child = spawn(
    process.execPath,
    [join(home, "guard-process.mjs"), ...(user ? [String(user.uid), String(user.gid)] : [])],
    // a Ctrl-C is for us: the server lasts until we are done with it
    { cwd: "/", detached: true, stdio: ["ignore", "ignore", "inherit", "ipc"] },
  );
  const guard: { folder: string | null; ended: string | null } = { folder: null, ended: null };
  let program: { pid: number | null; ended: string | null } = { pid: null, ended: "never ran" };
  child.on("message", (told: Told) => {
    if ("folder" in told) guard.folder = told.folder;
    else if ("started" in told) program.pid = told.started;
    else program.ended = told.ended;
  });
  const leave = (how: string): void => {
    guard.ended = how;
    program.ended ??= `its guard ended: ${how}`;
  };
  // more than one where messages are sent to a guard that has just died
  child.on("error", (error) => leave(error.message));
  child.once("exit", (code, signal) => leave(signal ?? `exit ${code}`));
  // who forgets to end a server can end nevertheless
  child.unref();
  child.channel?.unref();

  while (guard.folder === null) {
    if (guard.ended !== null) throw new Error(`PostgreSQL's guard did not start: ${guard.ended}`);
    await pause(5);
  }
  return {
    folder: guard.folder,
    run(...words) {
      program = { pid: null, ended: guard.ended };
      if (child.connected) child.send({ run: words });
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
