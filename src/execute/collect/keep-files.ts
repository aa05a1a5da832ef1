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
  /** The run's signal. Uploads are retried until it is aborted. */
  signal: AbortSignal;
  /** Aborted when the attempt is lost or the runner shuts down, even if the run was stopped before. */
  lost: AbortSignal;
  times: UploadTimes;
  random: () => number;
  monotonic: () => number;
  record: (event: RunEvent) => void;
  /** Called when another runner has the run now. */
  onFenced: () => void;
}

export interface UploadTimes {
  /** The first pause between two tries. */
  retryMs: number;
  /** How long an upload is retried while the coordinator is away. */
  retryForMs: number;
  /** The same for a run that is being stopped. */
  retryForMsOnceStopped: number;
  /** An upload fails if it makes no progress for this long. */
  stallMs: number;
}

export const uploadTimes: UploadTimes = {
  retryMs: 500,
  retryForMs: 300_000,
  retryForMsOnceStopped: 30_000,
  stallMs: 60_000,
};

type FileEvent = Extract<RunEvent, { type: "file" }>;

/** Uploads all files, then records them. If one upload fails, none is recorded. */
export async function keepFiles(files: readonly FoundFile[], options: KeepFilesOptions): Promise<FilesKept> {
  const { signal, lost, times } = options;
  // decided once: a stop that comes during the uploads ends them too
  const isStopping = signal.aborted && keepsFilesAfter(stopReasonOf(signal));
  const limits: RetryLimits = isStopping
    ? { ending: lost, retryForMs: times.retryForMsOnceStopped }
    : { ending: signal, retryForMs: times.retryForMs };
  const kept: FileEvent[] = [];
  try {
    for (const file of files) kept.push(await keepOne(file, options, limits));
  } catch (error) {
    if (error instanceof KeepError) return { ok: false, message: error.message };
    throw error;
  }
  for (const event of kept) options.record(event);
  return { ok: true, files: kept.map(({ path, sha256 }) => ({ path, sha256 })) };
}

/** Whether the files of a run that was stopped for this reason are still of interest. */
export function keepsFilesAfter(reason: StopReason): boolean {
  return reason === "timeout" || reason === "idle" || reason === "budget";
}

/** A run that is being stopped has less time for its files, and its own signal is already aborted. */
interface RetryLimits {
  ending: AbortSignal;
  retryForMs: number;
}

class KeepError extends Error {}

/** How often a file that changes during its upload is read again from the beginning. */
const maxReads = 3;

async function keepOne(file: FoundFile, options: KeepFilesOptions, limits: RetryLimits): Promise<FileEvent> {
  for (let reads = 0; reads < maxReads; reads++) {
    const { sha256, size, isText } = await inspect(file);
    const answer = await uploadWithRetries(file, { sha256, size }, options, limits);
    if (answer === "stored")
      return { type: "file", path: file.path, size, sha256, media_type: mediaTypeOf(file.path, isText) };
    if (answer === "fenced") {
      options.onFenced();
      throw new KeepError("another runner has the run now.");
    }
  }
  throw new KeepError(`${file.path} changed during each of ${maxReads} uploads.`);
}

async function inspect(file: FoundFile): Promise<{ sha256: string; size: number; isText: boolean }> {
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

/** Checks chunks that may end in the middle of a character. */
function utf8Check(): (bytes: Uint8Array, stream: boolean) => boolean {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  return (bytes, stream) => {
    try {
      decoder.decode(bytes, { stream });
      return true;
    } catch (error) {
      if (error instanceof TypeError) return false; // not UTF-8
      throw error;
    }
  };
}

async function uploadWithRetries(
  file: FoundFile,
  announced: { sha256: string; size: number },
  options: KeepFilesOptions,
  { ending, retryForMs }: RetryLimits,
): Promise<"stored" | "fenced" | "mismatch"> {
  const { times, monotonic } = options;
  const until = monotonic() + retryForMs;
  const backoff = createBackoff({ firstMs: times.retryMs, longestMs: times.retryMs * 20, random: options.random });
  for (;;) {
    if (ending.aborted) throw new KeepError("the run was stopped while its files were being uploaded.");
    try {
      return await uploadOnce(file, announced, options, ending);
    } catch (error) {
      if (error instanceof KeepError) throw error;
      if (ending.aborted) continue;
      const fault = portFault(error);
      const why = error instanceof Error ? error.message : String(error);
      if (fault === "refused" || fault === "duplicate")
        throw new KeepError(`the coordinator refused ${file.path}: ${why}`);
      if (monotonic() >= until) throw new KeepError(`${file.path} could not be uploaded: ${why}`);
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
    // do not wait for a port that ignores the signal
    const answer = await Promise.race([sending, rejectOn(stop, sending)]);
    return answer.upload;
  } finally {
    clearTimeout(timer);
    await content.return(undefined);
    await handle.close();
  }
}

/** Rejects when the signal is aborted, unless `settled` settles first. */
function rejectOn(signal: AbortSignal, settled: Promise<unknown>): Promise<never> {
  return new Promise((_resolve, reject) => {
    const fail = (): void => reject(new Error("the upload was stopped", { cause: signal.reason }));
    if (signal.aborted) return fail();
    signal.addEventListener("abort", fail, { once: true });
    const forget = (): void => signal.removeEventListener("abort", fail);
    settled.then(forget, forget);
  });
}

async function openOrFail(file: FoundFile): Promise<OpenFile> {
  try {
    return await file.open();
  } catch (error) {
    throw new KeepError(`${file.path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const chunkBytes = 256 * 1024;

/** Reads up to `upTo` bytes, by default the current size so that a growing file ends. Closes the handle. */
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
