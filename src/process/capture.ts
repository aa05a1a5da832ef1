import type { Readable } from "node:stream";
import type { Captured, CaptureOptions, CommandFault, OutputStream } from "../model/process.ts";
import { cannotStart, outputTooLarge } from "./faults.ts";
import { keepEnds } from "./keep.ts";
import { openSpill, type Spill } from "./spill.ts";

/** What is done with one stream of a command. */
export interface Capture {
  /** Reads the stream to its end; `onFault` is told at once what the command has to be ended for. Rejects where onOutput does. */
  read(stream: Readable | null, onFault: (fault: CommandFault) => void): Promise<Captured>;
  /** From now on nobody waits for onOutput: a command that was stopped has to end. */
  hurry(): void;
}

export type OpenedCaptures = { ok: true; stdout: Capture; stderr: Capture } | { ok: false; fault: CommandFault };

/** Opens the spill files, if any: before the command starts, so that nothing starts whose output has no place. */
export function openCaptures(options: CaptureOptions): OpenedCaptures {
  const opened: Spill[] = [];
  const open = (name: OutputStream): Capture => {
    // merged output all comes on stdout
    const path =
      options.mode === "none" || (options.mode === "merged" && name === "stderr") ? undefined : options.spill?.[name];
    const spill = path === undefined ? null : openSpill(path, options.redactor);
    if (spill !== null) opened.push(spill);
    return captureTo(name, spill, options);
  };
  try {
    return { ok: true, stdout: open("stdout"), stderr: open("stderr") };
  } catch (error) {
    for (const spill of opened) spill.discard();
    return {
      ok: false,
      fault: cannotStart(
        `its output cannot be written to a file (${String(error)}); choose a path that does not exist yet, in a folder that does`,
      ),
    };
  }
}

function captureTo(name: OutputStream, spill: Spill | null, options: CaptureOptions): Capture {
  const { mode, maxBytes, onOutput } = options;
  const keep = keepEnds(mode === "file" || mode === "none" ? 0 : maxBytes);
  const fails = options.onLimit === "fail" && mode !== "none";
  let hurried = false;
  let stopWaiting: (() => void) | undefined;

  const shown = (chunk: Uint8Array): Promise<void> | undefined => {
    const waits = hurried ? undefined : onOutput?.(name, chunk);
    if (waits === undefined) return undefined;
    return new Promise((resolve, reject) => {
      stopWaiting = resolve;
      waits.then(resolve, reject);
    });
  };
  return {
    hurry() {
      hurried = true;
      stopWaiting?.();
    },
    async read(stream, onFault) {
      const take = (chunk: Uint8Array): Promise<unknown> | undefined => {
        keep.push(chunk);
        if (fails && keep.totalBytes > maxBytes) onFault(outputTooLarge(maxBytes));
        const spilled = spill?.push(chunk).catch((error: unknown) => onFault(spillFault(spill, error)));
        const wait = shown(chunk);
        return spilled === undefined || wait === undefined ? (spilled ?? wait) : Promise.all([spilled, wait]);
      };
      if (stream !== null) await readAll(stream, take);
      await spill?.end().catch((error: unknown) => onFault(spillFault(spill, error)));
      const captured = keep.take();
      // in a file nothing is missing
      return mode === "file" ? { ...captured, truncated: false } : captured;
    },
  };
}

function spillFault(spill: Spill, error: unknown): CommandFault {
  return {
    code: "DROVER-EXE-010",
    message: `The output could not be written whole to ${spill.path} (${String(error)}), so the command was ended. Make room there, or choose another place.`,
  };
}

/** Each chunk once, in order; a promise holds the stream back. Node resumes pipes by itself at the exit, hence the queue. */
function readAll(stream: Readable, take: (chunk: Uint8Array) => Promise<unknown> | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const queue: Uint8Array[] = [];
    let busy = false;
    let ended = false;
    const next = (chunk: Uint8Array): void => {
      const wait = take(chunk);
      if (wait === undefined) return;
      busy = true;
      stream.pause();
      wait.then(goOn).catch(reject);
    };
    const goOn = (): void => {
      busy = false;
      const waiting = queue.shift();
      if (waiting !== undefined) next(waiting);
      if (busy) return;
      if (queue.length > 0) return goOn();
      if (ended) resolve();
      else stream.resume();
    };
    const finish = (): void => {
      ended = true;
      if (!busy) resolve();
    };
    stream.on("data", (chunk: Uint8Array) => {
      if (busy) {
        queue.push(chunk);
        stream.pause();
        return;
      }
      try {
        next(chunk);
      } catch (error) {
        reject(error);
      }
    });
    stream.once("end", finish);
    stream.once("close", finish);
    // a read that fails ends the stream; what came before is kept
    stream.once("error", finish);
  });
}
