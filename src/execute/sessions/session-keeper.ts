import type { RunEvent } from "../../model/event.ts";
import type { RunContext } from "../../model/executor.ts";
import type { Redactor } from "../../model/process.ts";
import type { PortFile } from "../../model/runner-port.ts";
import { isPartPath, maxWholeStateBytes, type SessionFile, type SessionState } from "../../model/session-state.ts";
import { createBackoff } from "../port/backoff.ts";
import type { Journal } from "../journal/journal.ts";
import type { UploadTimes } from "../collect/keep-files.ts";
import { portFault } from "../port/port-fault.ts";
import { RunFailure } from "../scaffold/run-failure.ts";
import type { SessionPort } from "./session-port.ts";
import { joinState, partsOf, splitState } from "./state-parts.ts";
import { batches, type FileTracker } from "../workspace/session-files.ts";

export interface KeeperOptions {
  run: { run_id: string; attempt: number };
  port: SessionPort;
  journal: Journal;
  redactor: Redactor;
  /** The state that it loads is its own session's, and not that of a session it forks. */
  resumes: boolean;
  /** Of the run: while it lives, a save is tried again. */
  signal: AbortSignal;
  /** Ends the last save of a run, which is made even where the run was stopped. */
  closed: AbortSignal;
  /** How long that may take, and what is left of it for a run that was stopped. */
  times: Pick<UploadTimes, "retryForMs" | "retryForMsOnceStopped">;
  random: () => number;
  /** Appends to the journal. */
  record: (event: RunEvent) => void;
  /** Reports what the journal has, now. */
  flush: () => void;
  /** The agent has spent what it may spend today. */
  onSpent: () => void;
  /** The attempt is another's now. */
  onFenced: () => void;
}

/** Loads the state a run continues from, and saves it anew as the run gets on. */
export interface SessionKeeper {
  load(): Promise<SessionState | null>;
  files(): AsyncIterable<SessionFile>;
  save: RunContext["session"]["save"];
  /** Whether this attempt has saved a state. */
  readonly hasSaved: boolean;
  /** From here on saves bring the files of the work directory along. */
  track(tracker: FileTracker): void;
}

type SaveOptions = NonNullable<Parameters<RunContext["session"]["save"]>[2]>;

const retryMs = 100;
/** Of the events in one save. */
const maxEventBytes = 8 * 1024 * 1024;
/** Where parts lie among the files of a session, which are in the order of their paths. */
const beforeParts = "/";
const afterParts = "/~";

export function createSessionKeeper(options: KeeperOptions): SessionKeeper {
  const { run, port, journal, redactor, signal } = options;
  let tracker: FileTracker | null = null;
  let hasSaved = false;
  let last: Promise<void> = Promise.resolve();
  /** Parts of the session's state that the record has. */
  let parts = new Set<string>();

  /** Until it is answered, or the run ends. */
  async function persist<A>(ask: () => Promise<A | "again">, until = signal): Promise<A> {
    const backoff = createBackoff({ firstMs: retryMs, longestMs: retryMs * 20, random: options.random });
    for (;;) {
      until.throwIfAborted();
      try {
        const answer = await ask();
        if (answer !== "again") return answer;
      } catch (error) {
        const fault = portFault(error);
        if (fault === "refused" || fault === "duplicate") throw error;
      }
      await backoff.wait(until);
    }
  }

  function untilClosed(): AbortSignal {
    const { retryForMs, retryForMsOnceStopped } = options.times;
    return AbortSignal.any([options.closed, AbortSignal.timeout(signal.aborted ? retryForMsOnceStopped : retryForMs)]);
  }

  function fenced(): never {
    options.onFenced();
    throw new Error("the run is not this runner's any more");
  }

  async function save(format: string, bytes: Uint8Array, more: SaveOptions = {}): Promise<void> {
    const { events = [], files = false, stays = false } = more;
    const until = more.last === true ? untilClosed() : signal;
    if (journal.fault) throw journal.fault;
    if (bytes.length > maxWholeStateBytes) throw tooLarge(bytes.length);
    const split = splitState(format, redactor.exactBytes(bytes));
    const state = { format: split.format, bytes: toBase64(split.bytes) };
    // Nothing refers to them before the state itself is saved.
    for (const part of batches(split.parts.filter(({ path }) => !parts.has(path))))
      if (part.length > 0)
        await saveOnce({ ...state, bytes: null, n: 0, portable: false, files: part.map(portPart) }, until);
    const named = new Set(split.parts.map(({ path }) => path));
    const unneeded = [...parts].filter((path) => !named.has(path)).map((path) => ({ path, type: null }));
    // Until the state is saved, the events it covers are reported by the save alone.
    journal.hold();
    for (const event of events) options.record(event);
    const n = journal.lastN;
    try {
      const changed = files || tracker?.isNew ? await tracker?.changes() : undefined;
      const all = tracker?.isNew === true;
      const portable = !stays && (changed?.portable ?? tracker?.portable ?? false);
      const sent = batches(changed?.files ?? []);
      for (const [at, part] of sent.entries()) {
        const isLast = at === sent.length - 1;
        await saveOnce(
          {
            ...state,
            n,
            // A state whose files are not all there yet is not one that others can continue from.
            portable: portable && isLast,
            files: [...part.map(portFile), ...(isLast ? unneeded : [])],
            all_files: all && at === 0,
          },
          until,
        );
      }
      parts = named;
      changed?.saved();
      journal.saved(n);
      hasSaved = true;
    } finally {
      journal.release();
    }
  }

  async function saveOnce(
    part: Pick<Parameters<SessionPort["save"]>[0], "n" | "format" | "bytes" | "portable" | "files" | "all_files">,
    until: AbortSignal,
  ): Promise<void> {
    const answer = await persist(async () => {
      const events = part.bytes === null ? [] : journal.unshipped(part.n, maxEventBytes);
      if (events !== null) {
        const got = await port.save({ ...run, ...part, events });
        if (got.save !== "gap") return got;
      }
      options.flush();
      return "again";
    }, until);
    if (answer.save === "fenced") fenced();
    if (answer.save === "saved" && answer.budget === "spent") options.onSpent();
    if (answer.save === "too_large") throw tooLarge(part.bytes?.length ?? 0);
  }

  /** Known secrets go no further than this runner. */
  function portFile(file: SessionFile | { path: string; type: null }): PortFile | { path: string; type: null } {
    if (file.type === null) return file;
    return { ...file, bytes: toBase64(redactor.exactBytes(file.bytes)) };
  }

  async function* filesAfter(files_after: string): AsyncIterable<SessionFile> {
    for (let after = files_after; ;) {
      const from = after;
      const answer = await persist(() => port.load({ ...run, files_after: from }));
      if (answer.load === "fenced") fenced();
      for (const file of answer.files) yield { ...file, bytes: Buffer.from(file.bytes, "base64") };
      if (!answer.more) return;
      after = answer.files.at(-1)?.path ?? from;
      // parts come one after the other, and nobody who goes on from here wants them all
      if (isPartPath(after) && files_after === "") after = afterParts;
    }
  }

  return {
    async load() {
      const answer = await persist(() => port.load(run));
      if (answer.load === "fenced") fenced();
      if (answer.state === null) return null;
      const state = { ...answer.state, bytes: Buffer.from(answer.state.bytes, "base64") };
      if (options.resumes) parts = new Set(partsOf(state)?.parts);
      return joinState(state, filesAfter(beforeParts));
    },
    async *files() {
      for await (const file of filesAfter("")) if (!isPartPath(file.path)) yield file;
    },
    save(...given) {
      const next = last.then(() => save(...given));
      last = next.catch(() => undefined); // who asked for it is told
      return next;
    },
    get hasSaved() {
      return hasSaved;
    },
    track: (given) => void (tracker = given),
  };
}

function portPart({ path, type, bytes }: SessionFile): PortFile {
  return { path, type, bytes: toBase64(bytes) };
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

function tooLarge(bytes: number): RunFailure {
  return new RunFailure(
    "limit_exceeded",
    `The state of the session is ${bytes} bytes; the record takes ${maxWholeStateBytes}. Start a new session.`,
  );
}
