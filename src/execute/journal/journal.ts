import type { NumberedEvent, RunEvent } from "../../model/event.ts";
import type { Outcome } from "../../model/executor.ts";
import type { HostError } from "../../model/errors.ts";
import { createFailedOutcome } from "../../model/outcome.ts";
import { isEventTooLarge, truncateEvent } from "../../model/event-size.ts";
import type { LogFile } from "./log-file.ts";

/**
 * The write-ahead log of one attempt. Every event is written to the file first. Recent events are shipped from memory;
 * if too many pile up, they are read back from the file.
 */
export interface Journal {
  readonly run_id: string;
  readonly attempt: number;
  readonly lastN: number;
  readonly ackedN: number;
  /** Bytes appended and not yet acknowledged. */
  readonly unshippedBytes: number;
  /** Set once the log could not be written. The run can no longer succeed. */
  readonly writeError: HostError | null;
  readonly outcome: Outcome | null;
  /** Approximate size of the outcome in a report. */
  readonly outcomeBytes: number;
  /** Returns false, without appending, if the log is full. */
  append(event: RunEvent): boolean;
  /** Resolves when everything appended so far is durable. Rejects if the disk fails. */
  sync(): Promise<void>;
  /** Appends the outcome as the last line, or keeps it in memory if the disk fails. */
  finish(outcome: Outcome): void;
  /** The next unacknowledged events, about `maxBytes` of them. `isComplete` means that no more follow. */
  next(maxBytes: number): { events: NumberedEvent[]; bytes: number; isComplete: boolean };
  /** Until release(), `next` does not return events that are appended from now on. */
  hold(): void;
  release(): void;
  /** The unacknowledged events up to `n`; null if they exceed `maxBytes` or are not all in memory. */
  unshipped(n: number, maxBytes: number): NumberedEvent[] | null;
  /** Records that the events up to `n` were stored together with the session state for which they were held back. */
  markSaved(n: number): void;
  ack(n: number): void;
  /**
   * Replaces the next event, or the outcome if no event is left, with a note that the coordinator refused it. Returns
   * false if it was already replaced.
   */
  replaceRefused(reason: string): boolean;
  /** Call this when everything is stored. Removes the file, or marks it as shipped if `keepsFile` is set. */
  markShipped(): Promise<void>;
  /** Removes the file unshipped, because the attempt is lost. */
  remove(): Promise<void>;
  close(): void;
}

export interface JournalOptions {
  run_id: string;
  attempt: number;
  /** Throws a HostError if the file cannot be opened. */
  open: () => LogFile;
  now: () => Date;
  /** Limit for events in memory. */
  memoryBytes: number;
  /** Limit for the whole log. */
  maxBytes: number;
  /** Whether to keep the file after it was shipped, for people to read. */
  keepsFile?: boolean;
  /** For the log of an earlier runner: the number of its last event, and its outcome. */
  recovered?: { lastN: number; outcome: Outcome | null };
}

/** The last line of a kept log. Marks that everything in it was shipped. */
export const shippedLine = JSON.stringify({ shipped: true });

interface Entry {
  numbered: NumberedEvent;
  bytes: number;
}

const readChunkBytes = 1024 * 1024;
/** Events in one report. The coordinator takes only a few more. */
const maxEventsPerReport = 400;
/** A finished run is usually acknowledged within this time. */
const syncDelayMs = 50;
/** Reserved in a full log for the events that end the run. */
const reserveBytes = 64 * 1024;

export function openJournal(options: JournalOptions): Journal {
  const { run_id, attempt } = options;
  let writeError: HostError | null = null;
  const file = tryWrite(options.open);
  let lastN = options.recovered?.lastN ?? 0;
  let outcome: Outcome | null = options.recovered?.outcome ?? null;
  let outcomeBytes = outcome === null ? 0 : JSON.stringify(outcome).length;
  let ackedN = 0;
  let queue: Entry[] = [];
  let queuedBytes = 0;
  /** File offset after the last queued line. */
  let queuedUpTo = options.recovered ? 0 : (file?.size ?? 0);
  /** Whether the file has lines that are not in the queue. */
  let hasUnreadLines = options.recovered !== undefined;
  /** Events after this number are held back. */
  let heldAfter: number | null = null;
  let replaced: number | "outcome" | null = null;
  let syncTimer: NodeJS.Timeout | undefined;
  /** Events that could not be written to disk. */
  const unwritten: Entry[] = [];

  function tryWrite<T>(write: () => T): T | null {
    try {
      return write();
    } catch (error) {
      writeError ??= error as HostError; // A log file throws nothing else.
      return null;
    }
  }

  function load(): void {
    if (!file) hasUnreadLines = false;
    while (hasUnreadLines && queue.length === 0) {
      const { lines, end } = file!.read(queuedUpTo, readChunkBytes);
      queuedUpTo = end;
      hasUnreadLines = lines.length > 0 && end < file!.size;
      for (const line of lines) {
        const entry = parseEntry(line);
        if (entry && entry.numbered.n > ackedN) enqueue(entry);
      }
    }
    if (!hasUnreadLines && queue.length === 0) for (const entry of unwritten.splice(0)) enqueue(entry);
  }

  function toLine(event: RunEvent): { numbered: NumberedEvent; line: string } {
    const numbered: NumberedEvent = { n: lastN + 1, at: options.now().toISOString(), event };
    const line = JSON.stringify({ attempt, ...numbered, ...(heldAfter === null ? {} : { held: true }) });
    return isEventTooLarge(event, line) ? toLine(truncateEvent(event)) : { numbered, line };
  }

  function enqueue(entry: Entry): void {
    queue.push(entry);
    queuedBytes += entry.bytes;
  }

  return {
    run_id,
    attempt,
    get lastN() {
      return lastN;
    },
    get ackedN() {
      return ackedN;
    },
    get unshippedBytes() {
      return queuedBytes + (hasUnreadLines && file ? file.size - queuedUpTo : 0);
    },
    get writeError() {
      return writeError;
    },
    get outcome() {
      return outcome;
    },
    get outcomeBytes() {
      return outcomeBytes;
    },

    append(event) {
      const { numbered, line } = toLine(event);
      const isEnd = event.type === "execution_ended" || event.type === "error" || event.type === "status";
      if (file && file.size + line.length > options.maxBytes - (isEnd ? 0 : reserveBytes)) return false;
      const written = file && writeError === null ? tryWrite(() => (file.append(line), true)) : null;
      // Without a disk, keep only the events that report how the run ended, in memory.
      if (written === null && !isEnd) throw writeError!;
      lastN++;
      const entry = { numbered, bytes: line.length };
      if (written === null) unwritten.push(entry);
      else if (!hasUnreadLines && queuedBytes + entry.bytes <= options.memoryBytes) {
        enqueue(entry);
        queuedUpTo = file!.size;
      } else hasUnreadLines = true;
      return true;
    },

    async sync() {
      if (writeError) throw writeError;
      await file!.sync();
    },

    finish(result) {
      if (outcome) return;
      outcome = result;
      const line = JSON.stringify({ attempt, last_n: lastN, at: options.now().toISOString(), outcome });
      outcomeBytes = line.length;
      if (file && writeError === null) tryWrite(() => file.append(line));
      // An acknowledged run no longer needs its log, so sync only if the acknowledgement takes a long time.
      if (writeError === null)
        syncTimer = setTimeout(
          () => void file!.sync().catch((error: unknown) => (writeError ??= error as HostError)),
          syncDelayMs,
        ).unref();
    },

    next(maxBytes) {
      if (queue.length === 0) load();
      const events: NumberedEvent[] = [];
      let bytes = 0;
      for (const entry of queue) {
        if (events.length > 0 && (bytes + entry.bytes > maxBytes || events.length === maxEventsPerReport)) break;
        if (heldAfter !== null && entry.numbered.n > heldAfter) break;
        events.push(entry.numbered);
        bytes += entry.bytes;
      }
      return { events, bytes, isComplete: !hasUnreadLines && unwritten.length === 0 && events.length === queue.length };
    },

    hold() {
      heldAfter ??= lastN;
    },
    release() {
      heldAfter = null;
    },
    unshipped(n, maxBytes) {
      if (n <= ackedN) return [];
      if (queue.length === 0) load();
      const events: NumberedEvent[] = [];
      let bytes = 0;
      for (const entry of queue) {
        if (entry.numbered.n > n) break;
        events.push(entry.numbered);
        bytes += entry.bytes;
      }
      return events.at(-1)?.n === n && bytes <= maxBytes ? events : null;
    },
    markSaved(n) {
      if (file && writeError === null) tryWrite(() => file.append(JSON.stringify({ attempt, saved: n })));
    },

    ack(n) {
      if (n < ackedN) {
        // The coordinator has fewer events than it once acknowledged: read the file from its start.
        [queue, queuedBytes, queuedUpTo, hasUnreadLines] = [[], 0, 0, true];
      } else {
        const index = queue.findIndex((entry) => entry.numbered.n > n);
        for (const entry of index < 0 ? queue.splice(0) : queue.splice(0, index)) queuedBytes -= entry.bytes;
      }
      ackedN = n;
      // An earlier runner shipped more events than its log still has.
      lastN = Math.max(lastN, n);
    },

    replaceRefused(reason) {
      if (queue.length === 0) load();
      const [entry] = queue;
      if (entry === undefined) {
        if (outcome === null || replaced === "outcome") return false;
        outcome = createFailedOutcome("internal", `The coordinator refused the result: ${reason}`);
        [replaced, outcomeBytes] = ["outcome", JSON.stringify(outcome).length];
        return true;
      }
      const { n, event } = entry.numbered;
      if (replaced === n) return false;
      const message = `The coordinator refused an event of type ${event.type}, which was dropped: ${reason}`;
      entry.numbered = { ...entry.numbered, event: { type: "error", code: "event_refused", message } };
      replaced = n;
      return true;
    },

    async markShipped() {
      clearTimeout(syncTimer);
      // Remove a log that cannot be marked, or the next runner would ship it again.
      if (options.keepsFile && file && writeError === null && tryWrite(() => (file.append(shippedLine), true)))
        file.close();
      else await file?.remove();
    },
    async remove() {
      clearTimeout(syncTimer);
      await file?.remove();
    },
    close() {
      clearTimeout(syncTimer);
      file?.close();
    },
  };
}

function parseEntry(line: string): Entry | null {
  const { n, at, event } = JSON.parse(line) as Partial<NumberedEvent>; // This runner wrote the lines, or readLog() validated them.
  if (n === undefined || at === undefined || event === undefined) return null;
  return { numbered: { n, at, event }, bytes: line.length };
}
