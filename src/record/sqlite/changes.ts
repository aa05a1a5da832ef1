import type { Change } from "../../model/store.ts";
import type { Connection } from "./connection.ts";
import type { ChangeSet } from "../transaction.ts";

export interface ChangeNotifier {
  listen(listener: (change: Change) => void): () => void;
  publish(changes: ChangeSet): void;
  /** Notifies the listeners if another process has committed since the last call. */
  notifyOfForeignCommits(): void;
}

/**
 * Notifies listeners of commits. SQLite's data_version changes with commits of other connections, but not with those of
 * this one.
 */
export function createChangeNotifier(connection: Connection): ChangeNotifier {
  const listeners = new Set<(change: Change) => void>();
  let lastVersion: number | null = null;
  return {
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    publish(changes) {
      for (const listener of listeners) listener({ ...changes, fromOtherProcess: false });
    },
    notifyOfForeignCommits() {
      const version = Number(connection.sql("pragma data_version").get()?.["data_version"]);
      const hasChanged = lastVersion !== null && version !== lastVersion;
      lastVersion = version;
      if (!hasChanged) return;
      for (const listener of listeners)
        listener({ runs: null, claimable: [], runnersWithOrders: new Set(), fromOtherProcess: true });
    },
  };
}
