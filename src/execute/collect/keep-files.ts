import { createHash } from "node:crypto";
import type { RunEvent } from "../../model/event.ts";
import type { FilesKept, FoundFile, OpenFile } from "../../model/executor.ts";
import type { StopReason } from "../../model/states.ts";
import { createBackoff } from "../port/backoff.ts";
import { mediaTypeOf } from "./media-types.ts";
import { portFault } from "../port/port-fault.ts";
import { stopReasonOf } from "../supervise/stop-outcome.ts";
import type { Upload } from "./upload.ts";

export interface KeepFilesOptions {
  run: { run_id: string; attempt: number };
  upload: Upload;
  /** Of the run: while it lives, an upload is tried again. */
  signal: AbortSignal;
  /** The attempt is lost or the runner goes, whatever the run was ended for before that. */
  lost: AbortSignal;
  times: UploadTimes;
  random: () => number;
  monotonic: () => number;
  record: (event: RunEvent) => void;
  /** The attempt is another's now. */
  onFenced: () => void;
}

export interface UploadTimes {
  /** Between two tries, at first. */
  retryMs: number;
  /** How long a coordinator may be away before the files are given up. */
  retryForMs: number;
  /** What is left of that for a run that is being ended. */
  retryForMsOnceStopped: number;
  /** An upload in which nothing moves for so long has failed. */
  stallMs: number;
}

export const uploadTimes: UploadTimes = {
  retryMs: 500,
  retryForMs: 300_000,
  retryForMsOnceStopped: 30_000,
  stallMs: 60_000,
};

type FileEvent = Extract<RunEvent, { type: "file" }>;

/** All of them are with the coordinator before the first is on the record; else none is. */
export async function keepFiles(files: readonly FoundFile[], options: KeepFilesOptions): Promise<FilesKept> {
  const { signal, lost, times } = options;
  // decided once: what ends a run while its files are uploaded ends the uploads too
  const isLast = signal.aborted && keepsFilesAfter(stopReasonOf(signal));
  const limits: Limits = isLast
    ? { ending: lost, retryForMs: times.retryForMsOnceStopped }
    : { ending: signal, retryForMs: times.retryForMs };
  const kept: FileEvent[] = [];
  try {
    for (const file of files) kept.push(await keepOne(file, options, limits));
  } catch (error) {
    if (error instanceof NotKept) return { ok: false, message: error.message };
    throw error;
  }
  for (const event of kept) options.record(event);
  return { ok: true, files: kept.map(({ path, sha256 }) => ({ path, sha256 })) };
}

/** Of a run ended for these, people want to see what it had made; of any other nobody does. */
export function keepsFilesAfter(reason: StopReason): boolean {
  return reason === "timeout" || reason === "idle" || reason === "budget";
}

/** A run that is being ended has less time for its files, and its own signal does not count any more. */
interface Limits {
  ending: AbortSignal;
  retryForMs: number;
}

class NotKept extends Error {}

/** A file that somebody writes at this moment is read again from its beginning, but not for ever. */
const readings = 3;

async function keepOne(file: FoundFile, options: KeepFilesOptions, limits: Limits): Promise<FileEvent> {
  for (let reading = 0; reading < readings; reading++) {
    const { sha256, size, isText } = await readThrough(file);
    const answer = await uploadWithPatience(file, { sha256, size }, options, limits);
    if (answer === "stored")
      return { type: "file", path: file.path, size, sha256, media_type: mediaTypeOf(file.path, isText) };
    if (answer === "fenced") {
      options.onFenced();
      throw new NotKept("the run is not this runner's any more.");
    }
  }
  throw new NotKept(`${file.path} changed each time it was uploaded.`);
}

async function readThrough(file: FoundFile): Promise<{ sha256: string; size: number; isText: boolean }> {
  const hash = createHash("sha256");
  const decodes = utf8Check();
  let size = 0;
  let isText = true;
  const handle = await openOrFail(file);
  for await (const chunk of contentOf(handle)) {
    size += chunk.length;
    hash.update(chunk);
    isText = isText && !chunk.includes(0) && decodes(chunk, true);
  }
  isText = isText && decodes(new Uint8Array(), false);
  return { sha256: hash.digest("hex"), size, isText };
}

/** Over pieces that may end in the middle of a character. */
function utf8Check(): (bytes: Uint8Array, stream: boolean) => boolean {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  return (bytes, stream) => {
    try {
      decoder.decode(bytes, { stream });
      return true;
    } catch (error) {
      if (error instanceof TypeError) return false; // its word for bytes that are not UTF-8
      throw error;
    }
  };
}

async function uploadWithPatience(
  file: FoundFile,
  announced: { sha256: string; size: number },
  options: KeepFilesOptions,
  { ending, retryForMs }: Limits,
): Promise<"stored" | "fenced" | "mismatch"> {
  const { times, monotonic } = options;
  const until = monotonic() + retryForMs;
  const backoff = createBackoff({ firstMs: times.retryMs, longestMs: times.retryMs * 20, random: options.random });
  for (;;) {
    if (ending.aborted) throw new NotKept("the run was ended while its files were uploaded.");
    try {
      return await uploadOnce(file, announced, options, ending);
    } catch (error) {
      if (error instanceof NotKept) throw error;
      if (ending.aborted) continue;
      const fault = portFault(error);
      const why = error instanceof Error ? error.message : String(error);
      if (fault === "refused" || fault === "duplicate") throw new NotKept(`${file.path} was refused: ${why}`);
      if (monotonic() >= until) throw new NotKept(`the coordinator did not take ${file.path}: ${why}`);
      await backoff.wait(ending);
    }
  }
}

async function uploadOnce(
  file: FoundFile,
  announced: { sha256: string; size: number },
  { upload, run, times }: KeepFilesOptions,
  ending: AbortSignal,
): Promise<"stored" | "fenced" | "mismatch"> {
  const stalled = new AbortController();
  const stall = (): void => stalled.abort("stalled");
  let timer = setTimeout(stall, times.stallMs);
  const handle = await openOrFail(file);
  async function* watched(): AsyncGenerator<Uint8Array> {
    for await (const chunk of contentOf(handle, announced.size)) {
      clearTimeout(timer);
      timer = setTimeout(stall, times.stallMs);
      yield chunk;
    }
  }
  const content = watched();
  try {
    const stop = AbortSignal.any([ending, stalled.signal]);
    const sending = upload({ ...run, ...announced }, content, stop);
    // a port that does not heed the signal is not waited for
    const answer = await Promise.race([sending, rejectOn(stop, sending)]);
    return answer.upload;
  } finally {
    clearTimeout(timer);
    await content.return(undefined);
    await handle.close();
  }
}

function rejectOn(signal: AbortSignal, unless: Promise<unknown>): Promise<never> {
  return new Promise((_resolve, reject) => {
    const fail = (): void => reject(new Error("the upload was stopped", { cause: signal.reason }));
    if (signal.aborted) return fail();
    signal.addEventListener("abort", fail, { once: true });
    const forget = (): void => signal.removeEventListener("abort", fail);
    unless.then(forget, forget);
  });
}

async function openOrFail(file: FoundFile): Promise<OpenFile> {
  try {
    return await file.open();
  } catch (error) {
    throw new NotKept(`${file.path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const chunkBytes = 256 * 1024;

/** Closes what it reads. Without `upTo` that is as long as it is now: one that grows and grows is read to there. */
async function* contentOf(handle: OpenFile, upTo?: number): AsyncGenerator<Uint8Array> {
  try {
    const maxBytes = upTo ?? (await handle.stat()).size;
    for (let at = 0; at < maxBytes;) {
      const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, maxBytes - at));
      const { bytesRead } = await handle.read({ buffer, position: at });
      if (bytesRead === 0) return;
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}
