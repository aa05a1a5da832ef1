import type { RunEvent } from "../../model/event.ts";
import type { Journal } from "./journal.ts";

export interface JournalSinkOptions {
  journal: Journal;
  /** Called after an event that readers wait for. */
  notify: () => void;
  /** Called after an event that can wait for the end of a short run. */
  notifyLater: () => void;
  /** Called when the journal is full and takes no more events. */
  onFull: () => void;
  /** Called when the journal cannot be written. */
  onWriteError: () => void;
}

/** In a short run, these events and the outcome are milliseconds apart, so that one report can contain all of them. */
const deferredTypes: ReadonlySet<RunEvent["type"]> = new Set(["status", "execution_started", "execution_ended"]);

/** Appends the events of a claimed run to its journal, from which they are shipped. */
export function createJournalSink(options: JournalSinkOptions): (event: RunEvent) => void {
  const { journal, notify, notifyLater, onFull, onWriteError } = options;
  return (event) => {
    try {
      if (!journal.append(event)) onFull();
    } catch (error) {
      if (journal.writeError === null) throw error;
      onWriteError();
    }
    if (deferredTypes.has(event.type)) notifyLater();
    else notify();
  };
}
