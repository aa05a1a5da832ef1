import type { Readable } from "node:stream";
import type { CapturedOutput, CaptureOptions, CommandFault, OutputStream } from "../model/process.ts";
import { cannotStart, outputTooLarge } from "./faults.ts";
import { keepEnds } from "./keep-ends.ts";
import { openSpill, type Spill } from "./spill.ts";

/** Captures one output stream of a command. */
export interface Capture {
  /** Reads the stream to its end. Calls `onFault` at once if the command must be stopped. Rejects if onOutput rejects. */
  read(stream: Readable | null, onFault: (fault: CommandFault) => void): Promise<CapturedOutput>;
  /** Stops waiting for onOutput, so that a stopped command can end. */
  stopWaiting(): void;
}

export type OpenedCaptures = { ok: true; stdout: Capture; stderr: Capture } | { ok: false; fault: CommandFault };

/** Opens the spill files, if any. Call it before starting the command, which must not run if its output cannot be written. */
export function openCaptures(options: CaptureOptions): OpenedCaptures {
  const opened: Spill[] = [];
  const open = (name: OutputStream): Capture => {
    // Merged output arrives on stdout only.
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
  const buffer = keepEnds(mode === "file" || mode === "none" ? 0 : maxBytes);
  const failsAtLimit = options.onLimit === "fail" && mode !== "none";
  let hasStoppedWaiting = false;
  let endWait: (() => void) | undefined;

  const passOn = (chunk: Uint8Array): Promise<void> | undefined => {
    const handled = hasStoppedWaiting ? undefined : onOutput?.(name, chunk);
    if (handled === undefined) return undefined;
    return new Promise((resolve, reject) => {
      endWait = resolve;
      handled.then(resolve, reject);
    });
  };
  return {
    stopWaiting() {
      hasStoppedWaiting = true;
      endWait?.();
    },
    async read(stream, onFault) {
      const handleChunk = (chunk: Uint8Array): Promise<unknown> | undefined => {
        buffer.push(chunk);
        if (failsAtLimit && buffer.totalBytes > maxBytes) onFault(outputTooLarge(maxBytes));
        const spilled = spill?.push(chunk).catch((error: unknown) => onFault(spillFault(spill, error)));
        const handled = passOn(chunk);
        return spilled === undefined || handled === undefined ? (spilled ?? handled) : Promise.all([spilled, handled]);
      };
      if (stream !== null) await readAll(stream, handleChunk);
      await spill?.end().catch((error: unknown) => onFault(spillFault(spill, error)));
      const captured = buffer.result();
      // The file contains the complete output.
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

/**
 * Passes each chunk to `handleChunk`, in order. A returned promise pauses the stream. Chunks that still arrive are queued,
 * because Node resumes the pipes when the process exits.
 */
function readAll(stream: Readable, handleChunk: (chunk: Uint8Array) => Promise<unknown> | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const queue: Uint8Array[] = [];
    let isBusy = false;
    let hasEnded = false;
    const startChunk = (chunk: Uint8Array): void => {
      const handled = handleChunk(chunk);
      if (handled === undefined) return;
      isBusy = true;
      stream.pause();
      handled.then(processNext).catch(reject);
    };
    const processNext = (): void => {
      isBusy = false;
      const queued = queue.shift();
      if (queued !== undefined) startChunk(queued);
      if (isBusy) return;
      if (queue.length > 0) return processNext();
      if (hasEnded) resolve();
      else stream.resume();
    };
    const finish = (): void => {
      hasEnded = true;
      if (!isBusy) resolve();
    };
    stream.on("data", (chunk: Uint8Array) => {
      if (isBusy) {
        queue.push(chunk);
        stream.pause();
        return;
      }
      try {
        startChunk(chunk);
      } catch (error) {
        reject(error);
      }
    });
    stream.once("end", finish);
    stream.once("close", finish);
    // A failed read ends the stream, without losing earlier output.
    stream.once("error", finish);
  });
}
