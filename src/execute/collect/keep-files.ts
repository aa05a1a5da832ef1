import { createHash } from "node:crypto";
import type { RunEvent } from "../../model/event.ts";
import type { KeepFilesResult, FoundFile, OpenFile } from "../../model/executor.ts";
import type { StopReason } from "../../model/states.ts";
import { createBackoff } from "../port/backoff.ts";
import { chooseMediaType } from "./media-types.ts";
import { classifyPortError } from "../port/port-failure.ts";
import { getStopReason } from "../supervise/stop-outcome.ts";
import type { Upload } from "./upload.ts";

export interface KeepFilesOptions {
  run: { run_id: string; attempt: number };
  upload: Upload;
  /** The run's signal. Uploads are retried until it is aborted. */
  signal: AbortSignal;
  /** Aborted when the attempt is lost or the runner shuts down, even if the run was stopped before. */
  lostSignal: AbortSignal;
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
  /** How long an upload is retried while the coordinator is unreachable. */
  retryForMs: number;
  /** How long an upload is retried if the run is being stopped. */
  retryForMsAfterStop: number;
  /** An upload fails if it makes no progress for this long. */
  stallMs: number;
}

export const uploadTimes: UploadTimes = {
  retryMs: 500,
  retryForMs: 300_000,
  retryForMsAfterStop: 30_000,
  stallMs: 60_000,
};

type FileEvent = Extract<RunEvent, { type: "file" }>;

/** Uploads all files, then records them. If one upload fails, none is recorded. */
export async function keepFiles(files: readonly FoundFile[], options: KeepFilesOptions): Promise<KeepFilesResult> {
  const { signal, lostSignal, times } = options;
  // Decided once: a stop that arrives during the uploads cancels them.
  const isStopping = signal.aborted && keepsFilesAfter(getStopReason(signal));
  const limits: RetryLimits = isStopping
    ? { stopSignal: lostSignal, retryForMs: times.retryForMsAfterStop }
    : { stopSignal: signal, retryForMs: times.retryForMs };
  const fileEvents: FileEvent[] = [];
  try {
    for (const file of files) fileEvents.push(await keepFile(file, options, limits));
  } catch (error) {
    if (error instanceof KeepError) return { ok: false, message: error.message };
    throw error;
  }
  for (const event of fileEvents) options.record(event);
  return { ok: true, files: fileEvents.map(({ path, sha256 }) => ({ path, sha256 })) };
}

/** Whether to keep the files of a run that was stopped for this reason. */
export function keepsFilesAfter(reason: StopReason): boolean {
  return reason === "timeout" || reason === "idle" || reason === "budget";
}

/** A run that is being stopped gets less time for its files, and a signal other than its own, which is already aborted. */
interface RetryLimits {
  stopSignal: AbortSignal;
  retryForMs: number;
}

class KeepError extends Error {}

/** How many times a file that changes during its upload is read. */
const maxReads = 3;

async function keepFile(file: FoundFile, options: KeepFilesOptions, limits: RetryLimits): Promise<FileEvent> {
  for (let reads = 0; reads < maxReads; reads++) {
    const { sha256, size, isText } = await inspect(file);
    const result = await uploadWithRetries(file, { sha256, size }, options, limits);
    if (result === "stored")
      return { type: "file", path: file.path, size, sha256, media_type: chooseMediaType(file.path, isText) };
    if (result === "fenced") {
      options.onFenced();
      throw new KeepError("another runner has the run now.");
    }
  }
  throw new KeepError(`${file.path} changed during each of ${maxReads} uploads.`);
}

async function inspect(file: FoundFile): Promise<{ sha256: string; size: number; isText: boolean }> {
  const hash = createHash("sha256");
  const isUtf8 = createUtf8Check();
  let size = 0;
  let isText = true;
  const handle = await openOrFail(file);
  for await (const chunk of readContent(handle)) {
    size += chunk.length;
    hash.update(chunk);
    isText = isText && !chunk.includes(0) && isUtf8(chunk, true);
  }
  isText = isText && isUtf8(new Uint8Array(), false);
  return { sha256: hash.digest("hex"), size, isText };
}

/** Returns a check for chunks that may end in the middle of a character. */
function createUtf8Check(): (bytes: Uint8Array, stream: boolean) => boolean {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  return (bytes, stream) => {
    try {
      decoder.decode(bytes, { stream });
      return true;
    } catch (error) {
      if (error instanceof TypeError) return false; // The bytes are not UTF-8.
      throw error;
    }
  };
}

async function uploadWithRetries(
  file: FoundFile,
  digest: { sha256: string; size: number },
  options: KeepFilesOptions,
  { stopSignal, retryForMs }: RetryLimits,
): Promise<"stored" | "fenced" | "mismatch"> {
  const { times, monotonic } = options;
  const deadline = monotonic() + retryForMs;
  const backoff = createBackoff({ firstMs: times.retryMs, maxMs: times.retryMs * 20, random: options.random });
  for (;;) {
    if (stopSignal.aborted) throw new KeepError("the run was stopped while its files were being uploaded.");
    try {
      return await uploadOnce(file, digest, options, stopSignal);
    } catch (error) {
      if (error instanceof KeepError) throw error;
      if (stopSignal.aborted) continue;
      const failure = classifyPortError(error);
      const reason = error instanceof Error ? error.message : String(error);
      if (failure === "refused" || failure === "duplicate")
        throw new KeepError(`the coordinator refused ${file.path}: ${reason}`);
      if (monotonic() >= deadline) throw new KeepError(`${file.path} could not be uploaded: ${reason}`);
      await backoff.wait(stopSignal);
    }
  }
}

async function uploadOnce(
  file: FoundFile,
  digest: { sha256: string; size: number },
  { upload, run, times }: KeepFilesOptions,
  stopSignal: AbortSignal,
): Promise<"stored" | "fenced" | "mismatch"> {
  const stallController = new AbortController();
  const stall = (): void => stallController.abort("stalled");
  let timer = setTimeout(stall, times.stallMs);
  const handle = await openOrFail(file);
  async function* withStallTimeout(): AsyncGenerator<Uint8Array> {
    for await (const chunk of readContent(handle, digest.size)) {
      clearTimeout(timer);
      timer = setTimeout(stall, times.stallMs);
      yield chunk;
    }
  }
  const content = withStallTimeout();
  try {
    const stop = AbortSignal.any([stopSignal, stallController.signal]);
    const sending = upload({ ...run, ...digest }, content, stop);
    // Do not wait for a port that ignores the signal.
    const result = await Promise.race([sending, rejectOn(stop, sending)]);
    return result.upload;
  } finally {
    clearTimeout(timer);
    await content.return(undefined);
    await handle.close();
  }
}

/** Rejects when the signal is aborted, unless `work` settles first. */
function rejectOn(signal: AbortSignal, work: Promise<unknown>): Promise<never> {
  return new Promise((_resolve, reject) => {
    const fail = (): void => reject(new Error("the upload was stopped", { cause: signal.reason }));
    if (signal.aborted) return fail();
    signal.addEventListener("abort", fail, { once: true });
    const removeListener = (): void => signal.removeEventListener("abort", fail);
    work.then(removeListener, removeListener);
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

/** Reads up to `maxBytes`, by default the current size, so that reading a growing file ends. Closes the handle. */
async function* readContent(handle: OpenFile, maxBytes?: number): AsyncGenerator<Uint8Array> {
  try {
    const end = maxBytes ?? (await handle.stat()).size;
    for (let position = 0; position < end;) {
      const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, end - position));
      const { bytesRead } = await handle.read({ buffer, position });
      if (bytesRead === 0) return;
      position += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}
