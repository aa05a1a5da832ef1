import type { NumberedEvent, RunEvent } from "../../model/event.ts";
import type { Outcome } from "../../model/executor.ts";
import type { HostError } from "../../model/errors.ts";
import { failed } from "../../model/outcome.ts";
import { isEventTooLarge, shortenEvent } from "../../model/event-size.ts";
import type { LogFile } from "./log-file.ts";

/**
 * The write-ahead log of one attempt. What is appended is in the file before anything else happens to it;
 * it is shipped from memory while there is little, and read back from the file where much has piled up.
 */
export interface Journal {
  readonly run_id: string;
  readonly attempt: number;
  readonly lastN: number;
  readonly ackedN: number;
  /** Bytes appended and not yet acknowledged. */
  readonly unshippedBytes: number;
  /** Set once the log could not be written: nothing may be called a success any more. */
  readonly fault: HostError | null;
  readonly outcome: Outcome | null;
  /** About what the outcome adds to a report. */
  readonly outcomeBytes: number;
  /** False where the log is full: the event was not taken. */
  append(event: RunEvent): boolean;
  /** Resolves when all that was appended is durable; rejects where it cannot be made so. */
  sync(): Promise<void>;
  /** The last line. Kept in memory where the disk does not take it. */
  finish(outcome: Outcome): void;
  /** The next unacknowledged events, about `maxBytes` of them; `whole`: there are no more behind these. */
  next(maxBytes: number): { events: NumberedEvent[]; bytes: number; whole: boolean };
  /** Events appended from here on are not handed out by `next`, until released. */
  hold(): void;
  release(): void;
  /** The unacknowledged events up to this one; null where they are more than that, or not all in memory. */
  unshipped(n: number, maxBytes: number): NumberedEvent[] | null;
  /** The events up to this one are stored, with what they were held for. */
  saved(n: number): void;
  ack(n: number): void;
  /** The coordinator does not take the next event, or where there is none the outcome: says so in its place. False: it does already. */
  replaceRefused(why: string): boolean;
  /** The coordinator has all of it: the file is removed, or marked as shipped where it stays. */
  shipped(): Promise<void>;
  /** The coordinator wants none of it. */
  remove(): Promise<void>;
  close(): void;
}

export interface JournalOptions {
  run_id: string;
  attempt: number;
  /** Throws a HostError where it cannot be made. */
  open: () => LogFile;
  now: () => Date;
  /** Of events kept in memory as well. */
  memoryBytes: number;
  /** Of the whole log. */
  maxBytes: number;
  /** Whether people can read the file when the run has finished. */
  stays?: boolean;
  /** Of a log that was found: how far it had come. */
  found?: { lastN: number; outcome: Outcome | null };
}

/** The last line of a log that is kept: nothing of it is left to ship. */
export const shippedLine = JSON.stringify({ shipped: true });

interface Entry {
  numbered: NumberedEvent;
  bytes: number;
}

const readBytes = 1024 * 1024;
/** Of events in one report: a coordinator takes few more at a time. */
const mostAtOnce = 1000;
/** What an answer takes at most where all is well. */
const settleMs = 50;
/** Left free in a full log, for how the run ended. */
const reserveBytes = 64 * 1024;

export function openJournal(options: JournalOptions): Journal {
  const { run_id, attempt } = options;
  let fault: HostError | null = null;
  const file = tryTo(options.open);
  let lastN = options.found?.lastN ?? 0;
  let outcome: Outcome | null = options.found?.outcome ?? null;
  let outcomeBytes = outcome === null ? 0 : JSON.stringify(outcome).length;
  let ackedN = 0;
  let queue: Entry[] = [];
  let queuedBytes = 0;
  /** Behind the last line that was queued. */
  let readUpTo = options.found ? 0 : (file?.size ?? 0);
  /** Lines in the file that are not in the queue. */
  let behind = options.found !== undefined;
  /** Events after this one are held. */
  let heldAfter: number | null = null;
  let replaced: number | "outcome" | null = null;
  let settling: NodeJS.Timeout | undefined;
  /** Events that no disk took. */
  const unwritten: Entry[] = [];

  function tryTo<T>(write: () => T): T | null {
    try {
      return write();
    } catch (error) {
      fault ??= error as HostError; // the log file throws nothing else
      return null;
    }
  }

  function load(): void {
    if (!file) behind = false;
    while (behind && queue.length === 0) {
      const { lines, end } = file!.read(readUpTo, readBytes);
      readUpTo = end;
      behind = lines.length > 0 && end < file!.size;
      for (const line of lines) {
        const entry = entryOf(line);
        if (entry && entry.numbered.n > ackedN) enqueue(entry);
      }
    }
    if (!behind && queue.length === 0) for (const entry of unwritten.splice(0)) enqueue(entry);
  }

  function lineOf(event: RunEvent): { numbered: NumberedEvent; line: string } {
    const numbered: NumberedEvent = { n: lastN + 1, at: options.now().toISOString(), event };
    const line = JSON.stringify({ attempt, ...numbered, ...(heldAfter === null ? {} : { held: true }) });
    return isEventTooLarge(event, line) ? lineOf(shortenEvent(event)) : { numbered, line };
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
      return queuedBytes + (behind && file ? file.size - readUpTo : 0);
    },
    get fault() {
      return fault;
    },
    get outcome() {
      return outcome;
    },
    get outcomeBytes() {
      return outcomeBytes;
    },

    append(event) {
      const { numbered, line } = lineOf(event);
      const isEnd = event.type === "execution_ended" || event.type === "error" || event.type === "status";
      if (file && file.size + line.length > options.maxBytes - (isEnd ? 0 : reserveBytes)) return false;
      const written = file && fault === null ? tryTo(() => (file.append(line), true)) : null;
      // how it ended is told all the same; everything else is refused with the fault that ends the run
      if (written === null && !isEnd) throw fault!;
      lastN++;
      const entry = { numbered, bytes: line.length };
      if (written === null) unwritten.push(entry);
      else if (!behind && queuedBytes + entry.bytes <= options.memoryBytes) {
        enqueue(entry);
        readUpTo = file!.size;
      } else behind = true;
      return true;
    },

    async sync() {
      if (fault) throw fault;
      await file!.sync();
    },

    finish(ended) {
      if (outcome) return;
      outcome = ended;
      const line = JSON.stringify({ attempt, last_n: lastN, at: options.now().toISOString(), outcome });
      outcomeBytes = line.length;
      if (file && fault === null) tryTo(() => file.append(line));
      // shipped and acknowledged is as good, and the log is gone then: only what takes longer goes to the disk itself
      if (fault === null)
        settling = setTimeout(
          () => void file!.sync().catch((error: unknown) => (fault ??= error as HostError)),
          settleMs,
        ).unref();
    },

    next(maxBytes) {
      if (queue.length === 0) load();
      const events: NumberedEvent[] = [];
      let bytes = 0;
      for (const entry of queue) {
        if (events.length > 0 && (bytes + entry.bytes > maxBytes || events.length === mostAtOnce)) break;
        if (heldAfter !== null && entry.numbered.n > heldAfter) break;
        events.push(entry.numbered);
        bytes += entry.bytes;
      }
      return { events, bytes, whole: !behind && unwritten.length === 0 && events.length === queue.length };
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
    saved(n) {
      if (file && fault === null) tryTo(() => file.append(JSON.stringify({ attempt, saved: n })));
    },

    ack(n) {
      if (n < ackedN) {
        // whoever is there now has less than was once acknowledged: from the start again
        [queue, queuedBytes, readUpTo, behind] = [[], 0, 0, true];
      } else {
        const at = queue.findIndex((entry) => entry.numbered.n > n);
        for (const entry of at < 0 ? queue.splice(0) : queue.splice(0, at)) queuedBytes -= entry.bytes;
      }
      ackedN = n;
      // a Drover before us got further than its log tells
      lastN = Math.max(lastN, n);
    },

    replaceRefused(why) {
      if (queue.length === 0) load();
      const [entry] = queue;
      if (entry === undefined) {
        if (outcome === null || replaced === "outcome") return false;
        outcome = failed("internal", `The coordinator refused the result: ${why}`);
        [replaced, outcomeBytes] = ["outcome", JSON.stringify(outcome).length];
        return true;
      }
      const { n, event } = entry.numbered;
      if (replaced === n) return false;
      const message = `The coordinator refused an event of type ${event.type}, which was left out: ${why}`;
      entry.numbered = { ...entry.numbered, event: { type: "error", code: "event_refused", message } };
      replaced = n;
      return true;
    },

    async shipped() {
      clearTimeout(settling);
      // one that cannot be marked would be shipped again by the next runner
      if (options.stays && file && fault === null && tryTo(() => (file.append(shippedLine), true))) file.close();
      else await file?.remove();
    },
    async remove() {
      clearTimeout(settling);
      await file?.remove();
    },
    close() {
      clearTimeout(settling);
      file?.close();
    },
  };
}

function entryOf(line: string): Entry | null {
  const { n, at, event } = JSON.parse(line) as Partial<NumberedEvent>; // our own lines, checked when a log is found
  if (n === undefined || at === undefined || event === undefined) return null;
  return { numbered: { n, at, event }, bytes: line.length };
}
