import type { Readable } from "node:stream";
import type { Captured, CaptureOptions, CommandFault, OutputStream } from "../model/process.ts";
import { cannotStart, outputTooLarge } from "./faults.ts";
import { keepEnds } from "./keep.ts";
import { openSpill, type Spill } from "./spill.ts";

/** Captures one output stream of a command. */
export interface Capture {
  /** Reads the stream to its end. Calls `onFault` at once if the command must be stopped. Rejects if onOutput rejects. */
  read(stream: Readable | null, onFault: (fault: CommandFault) => void): Promise<Captured>;
  /** Stops waiting for onOutput, so that a stopped command can end. */
  hurry(): void;
}

export type OpenedCaptures = { ok: true; stdout: Capture; stderr: Capture } | { ok: false; fault: CommandFault };

/** Opens the spill files, if any. Call it before the start, so that no command runs whose output cannot be written. */
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
        `its output cannot be written to a file (${String(error)}); choose a new path in an existing directory`,
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
      // the file has the complete output
      return mode === "file" ? { ...captured, truncated: false } : captured;
    },
  };
}

function spillFault(spill: Spill, error: unknown): CommandFault {
  return {
    code: "DROVER-EXE-010",
    message: `The output could not be written completely to ${spill.path} (${String(error)}), so the command was stopped. Free some space there, or choose another path.`,
  };
}

/** Passes on each chunk once and in order. A promise applies backpressure. Node resumes pipes at the exit, hence the queue. */
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
    // a failed read ends the stream, and the earlier output is kept
    stream.once("error", finish);
  });
}
