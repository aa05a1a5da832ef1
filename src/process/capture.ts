import type { Readable } from "node:stream";
import type { Captured, CaptureOptions, CommandFault, OutputStream } from "../model/process.ts";
import { cannotStart, outputTooLarge } from "./faults.ts";
import { keepEnds } from "./keep.ts";
import { openSpill, type Spill } from "./spill.ts";

/** What is done with one stream of a command. */
export interface Capture {
  readonly name: OutputStream;
  readonly spill: Spill | null;
  /** Reads the stream to its end; `onFault` is told at once what the command has to be ended for. */
  read(stream: Readable | null, onFault: (fault: CommandFault) => void): Promise<Captured>;
}

export type OpenedCaptures = { ok: true; stdout: Capture; stderr: Capture } | { ok: false; fault: CommandFault };

/** Opens the spill files, if any: before the command starts, so that nothing starts whose output has no place. */
export function openCaptures(options: CaptureOptions): OpenedCaptures {
  const opened: Spill[] = [];
  const open = (name: OutputStream): Capture => {
    // merged output all comes on stdout
    const path = options.mode === "none" || (options.mode === "merged" && name === "stderr") ? undefined : options.spill?.[name];
    const spill = path === undefined ? null : openSpill(path, options.redactor);
    if (spill !== null) opened.push(spill);
    return captureTo(name, spill, options);
  };
  try {
    return { ok: true, stdout: open("stdout"), stderr: open("stderr") };
  } catch (error) {
    for (const spill of opened) void spill.end();
    return { ok: false, fault: cannotStart(`its output cannot be written to a file (${String(error)}); choose a path that does not exist yet`) };
  }
}

function captureTo(name: OutputStream, spill: Spill | null, options: CaptureOptions): Capture {
  const keep = keepEnds(options.mode === "file" || options.mode === "none" ? 0 : options.maxBytes);
  return {
    name,
    spill,
    async read(stream, onFault) {
      if (stream !== null) await readAll(stream, (chunk) => take(chunk, onFault));
      if (spill !== null) await spill.end().catch((error: unknown) => onFault(spillFault(spill, error)));
      const captured = keep.take();
      // in a file nothing is missing
      return options.mode === "file" ? { ...captured, truncated: false } : captured;
    },
  };

  function take(chunk: Uint8Array, onFault: (fault: CommandFault) => void): Promise<unknown> | undefined {
    keep.push(chunk);
    if (options.onLimit === "fail" && options.mode !== "none" && keep.totalBytes > options.maxBytes) onFault(outputTooLarge(options.maxBytes));
    const waits: Promise<unknown>[] = [];
    if (spill !== null) waits.push(spill.push(chunk).catch((error: unknown) => onFault(spillFault(spill, error))));
    const shown = options.onOutput?.(name, chunk);
    if (shown !== undefined) waits.push(shown);
    return waits.length === 0 ? undefined : Promise.all(waits);
  }
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
      wait.then(goOn, reject);
    };
    const goOn = (): void => {
      busy = false;
      while (!busy && queue.length > 0) next(queue.shift()!);
      if (busy) return;
      if (ended) resolve();
      else stream.resume();
    };
    const finish = (): void => {
      ended = true;
      if (!busy) resolve();
    };
    stream.on("data", (chunk: Uint8Array) => {
      if (!busy) return next(chunk);
      queue.push(chunk);
      stream.pause();
    });
    stream.once("end", finish);
    stream.once("close", finish);
    // a read that fails ends the stream; what came before is kept
    stream.once("error", finish);
  });
}
