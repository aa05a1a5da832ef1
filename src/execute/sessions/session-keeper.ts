import type { RunEvent } from "../../model/event.ts";
import type { RunContext } from "../../model/executor.ts";
import type { Redactor } from "../../model/process.ts";
import type { PortFile } from "../../model/runner-port.ts";
import { isPartPath, maxWholeStateBytes, type SessionFile, type SessionState } from "../../model/session-state.ts";
import { createBackoff } from "../port/backoff.ts";
import type { Journal } from "../journal/journal.ts";
import type { UploadTimes } from "../collect/keep-files.ts";
import { classifyPortError } from "../port/port-failure.ts";
import { RunFailure } from "../scaffold/run-failure.ts";
import type { SessionPort } from "./session-port.ts";
import { joinState, parseManifest, splitState } from "./state-parts.ts";
import { splitIntoBatches, type FileTracker } from "../workspace/session-files.ts";

export interface SessionKeeperOptions {
  run: { run_id: string; attempt: number };
  port: SessionPort;
  journal: Journal;
  redactor: Redactor;
  /** Whether the loaded state belongs to this session and not to a session that it forks. */
  resumes: boolean;
  /** The run's signal. Saves are retried until it is aborted. */
  signal: AbortSignal;
  /** Cancels the last save of a run, which is made even if the run was stopped. */
  closed: AbortSignal;
  /** How long the last save may take. */
  times: Pick<UploadTimes, "retryForMs" | "retryForMsAfterStop">;
  random: () => number;
  /** Appends to the journal. */
  record: (event: RunEvent) => void;
  /** Ships the journal now. */
  flush: () => void;
  /** Called when the agent has used up its budget for today. */
  onSpent: () => void;
  /** Called when another runner has the run now. */
  onFenced: () => void;
}

/** Loads the session state that a run continues from, and saves it as the run proceeds. */
export interface SessionKeeper {
  load(): Promise<SessionState | null>;
  loadFiles(): AsyncIterable<SessionFile>;
  save: RunContext["session"]["save"];
  /** Whether this attempt has saved a state. */
  readonly hasSaved: boolean;
  /** From now on, saves include the files of the work directory. */
  track(tracker: FileTracker): void;
}

type SaveOptions = NonNullable<Parameters<RunContext["session"]["save"]>[2]>;

const retryMs = 100;
/** Limit for the events in one save. */
const maxEventBytes = 8 * 1024 * 1024;
/** The session's files are sorted by path, and the parts of its state lie between these two paths. */
const beforeParts = "/";
const afterParts = "/~";

export function createSessionKeeper(options: SessionKeeperOptions): SessionKeeper {
  const { run, port, journal, redactor, signal } = options;
  let tracker: FileTracker | null = null;
  let hasSaved = false;
  let previousSave: Promise<void> = Promise.resolve();
  /** Parts of the session's state that the coordinator has. */
  let parts = new Set<string>();

  /** Retries until the coordinator responds or `retrySignal` is aborted. */
  async function retryUntilResponse<A>(send: () => Promise<A | "again">, retrySignal = signal): Promise<A> {
    const backoff = createBackoff({ firstMs: retryMs, maxMs: retryMs * 20, random: options.random });
    for (;;) {
      retrySignal.throwIfAborted();
      try {
        const response = await send();
        if (response !== "again") return response;
      } catch (error) {
        const failure = classifyPortError(error);
        if (failure === "refused" || failure === "duplicate") throw error;
      }
      await backoff.wait(retrySignal);
    }
  }

  function createLastSaveSignal(): AbortSignal {
    const { retryForMs, retryForMsAfterStop } = options.times;
    return AbortSignal.any([options.closed, AbortSignal.timeout(signal.aborted ? retryForMsAfterStop : retryForMs)]);
  }

  function throwFenced(): never {
    options.onFenced();
    throw new Error("another runner has the run now");
  }

  async function save(format: string, bytes: Uint8Array, saveOptions: SaveOptions = {}): Promise<void> {
    const { events = [], files = false, stays = false } = saveOptions;
    const retrySignal = saveOptions.last === true ? createLastSaveSignal() : signal;
    if (journal.writeError) throw journal.writeError;
    if (bytes.length > maxWholeStateBytes) throw stateTooLarge(bytes.length);
    const split = splitState(format, redactor.exactBytes(bytes));
    const state = { format: split.format, bytes: toBase64(split.bytes) };
    // Upload new parts first; nothing refers to them until the state itself is saved.
    for (const batch of splitIntoBatches(split.parts.filter(({ path }) => !parts.has(path))))
      if (batch.length > 0)
        await sendSave({ ...state, bytes: null, n: 0, portable: false, files: batch.map(toPortPart) }, retrySignal);
    const partPaths = new Set(split.parts.map(({ path }) => path));
    const unusedParts = [...parts].filter((path) => !partPaths.has(path)).map((path) => ({ path, type: null }));
    // Until the state is saved, its events are sent only with the save and not by the shipper.
    journal.hold();
    for (const event of events) options.record(event);
    const n = journal.lastN;
    try {
      const changes = files || tracker?.isNew ? await tracker?.findChanges() : undefined;
      const isFirstSave = tracker?.isNew === true;
      const portable = !stays && (changes?.portable ?? tracker?.portable ?? false);
      const fileBatches = splitIntoBatches(changes?.files ?? []);
      for (const [index, batch] of fileBatches.entries()) {
        const isLast = index === fileBatches.length - 1;
        await sendSave(
          {
            ...state,
            n,
            // Another runner can continue only once all files are there.
            portable: portable && isLast,
            files: [...batch.map(toPortFile), ...(isLast ? unusedParts : [])],
            all_files: isFirstSave && index === 0,
          },
          retrySignal,
        );
      }
      parts = partPaths;
      changes?.markSaved();
      journal.markSaved(n);
      hasSaved = true;
    } finally {
      journal.release();
    }
  }

  async function sendSave(
    request: Pick<Parameters<SessionPort["save"]>[0], "n" | "format" | "bytes" | "portable" | "files" | "all_files">,
    retrySignal: AbortSignal,
  ): Promise<void> {
    const response = await retryUntilResponse(async () => {
      const events = request.bytes === null ? [] : journal.unshipped(request.n, maxEventBytes);
      if (events !== null) {
        const saveResponse = await port.save({ ...run, ...request, events });
        if (saveResponse.save !== "gap") return saveResponse;
      }
      options.flush();
      return "again";
    }, retrySignal);
    if (response.save === "fenced") throwFenced();
    if (response.save === "saved" && response.budget === "spent") options.onSpent();
    if (response.save === "too_large") throw stateTooLarge(request.bytes?.length ?? 0);
  }

  /** Redacts known secrets before the file leaves this runner. */
  function toPortFile(file: SessionFile | { path: string; type: null }): PortFile | { path: string; type: null } {
    if (file.type === null) return file;
    return { ...file, bytes: toBase64(redactor.exactBytes(file.bytes)) };
  }

  async function* loadFilesAfter(files_after: string): AsyncIterable<SessionFile> {
    for (let after = files_after; ;) {
      const startPath = after;
      const response = await retryUntilResponse(() => port.load({ ...run, files_after: startPath }));
      if (response.load === "fenced") throwFenced();
      for (const file of response.files) yield { ...file, bytes: Buffer.from(file.bytes, "base64") };
      if (!response.more) return;
      after = response.files.at(-1)?.path ?? startPath;
      // Skip the parts, which are next to each other, when listing files from the start.
      if (isPartPath(after) && files_after === "") after = afterParts;
    }
  }

  return {
    async load() {
      const response = await retryUntilResponse(() => port.load(run));
      if (response.load === "fenced") throwFenced();
      if (response.state === null) return null;
      const state = { ...response.state, bytes: Buffer.from(response.state.bytes, "base64") };
      if (options.resumes) parts = new Set(parseManifest(state)?.parts);
      return joinState(state, loadFilesAfter(beforeParts));
    },
    async *loadFiles() {
      for await (const file of loadFilesAfter("")) if (!isPartPath(file.path)) yield file;
    },
    save(...args) {
      const next = previousSave.then(() => save(...args));
      previousSave = next.catch(() => undefined); // The caller gets the error.
      return next;
    },
    get hasSaved() {
      return hasSaved;
    },
    track: (newTracker) => void (tracker = newTracker),
  };
}

function toPortPart({ path, type, bytes }: SessionFile): PortFile {
  return { path, type, bytes: toBase64(bytes) };
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

function stateTooLarge(bytes: number): RunFailure {
  return new RunFailure(
    "limit_exceeded",
    `The session's state has ${bytes} bytes; the maximum is ${maxWholeStateBytes}. Start a new session.`,
  );
}
