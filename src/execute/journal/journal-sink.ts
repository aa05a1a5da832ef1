import type { RunEvent } from "../../model/event.ts";
import type { Journal } from "./journal.ts";

export interface JournalSinkOptions {
  journal: Journal;
  /** Something waits to be shipped. */
  notify: () => void;
  /** The journal is full: it takes no more events of the run. */
  onFull: () => void;
  /** The journal cannot be written. */
  onFault: () => void;
}

/** Keeps the events of a claimed run in its write-ahead journal, from which they are shipped. */
export function journalSink({ journal, notify, onFull, onFault }: JournalSinkOptions): (event: RunEvent) => void {
  return (event) => {
    try {
      if (!journal.append(event)) onFull();
    } catch (error) {
      if (journal.fault === null) throw error;
      onFault();
    }
    notify();
  };
}
