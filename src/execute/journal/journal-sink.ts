import type { RunEvent } from "../../model/event.ts";
import type { Journal } from "./journal.ts";

export interface JournalSinkOptions {
  journal: Journal;
  /** Called after each event, since there is something to ship. */
  notify: () => void;
  /** Called when the journal is full and takes no more events. */
  onFull: () => void;
  /** Called when the journal cannot be written. */
  onWriteError: () => void;
}

/** Appends the events of a claimed run to its journal, from which they are shipped. */
export function journalSink({ journal, notify, onFull, onWriteError }: JournalSinkOptions): (event: RunEvent) => void {
  return (event) => {
    try {
      if (!journal.append(event)) onFull();
    } catch (error) {
      if (journal.writeError === null) throw error;
      onWriteError();
    }
    notify();
  };
}
