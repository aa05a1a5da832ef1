import { monotonicMs } from "../../model/clock.ts";
import { HostError } from "../../model/errors.ts";
import type { Op, StoreResult } from "../../model/store.ts";
import type { AuditEntry } from "../audit/chain.ts";
import type { ChangeSet } from "../transaction.ts";
import type { CommitWork, GroupCommit } from "../writer.ts";
import { rollBack } from "./write-lock.ts";
import { runWork } from "./run-work.ts";
import type { Connection } from "./connection.ts";
import { toHostError, isBusy, createLockedError } from "./errors.ts";
import type { DatabaseFiles } from "./database-files.ts";
import { randomDelayMs } from "./with-retries.ts";

interface Options extends CommitWork {
  connection: Connection;
  waitMs: number;
  files: DatabaseFiles;
  now(): Date;
}

interface Caller {
  ops: readonly Op[];
  resolve(results: StoreResult[]): void;
  reject(error: unknown): void;
}

/** After this many commits a process counts as long-lived, and its WAL may grow larger: see ./open-connection.ts. */
const longLivedCommits = 50;

/** How often a long-lived process checks that its files still exist. A new one checks with each commit. */
const checkEveryMs = 100;

/**
 * At most this many transactions start from a microtask in one event-loop tick; later callers are batched until the tick
 * ends.
 */
const maxMicrotaskFlushesPerTick = 2;

/**
 * Runs one transaction for all callers that wait at the same time. A single caller waits only for a microtask. Callers
 * woken by I/O arrive one by one within a tick of the event loop, so after several in one tick, the rest are batched until
 * it ends. Batching also lets timers and I/O run while one caller writes continuously.
 */
export function createGroupCommit(options: Options): GroupCommit {
  const { connection, waitMs, files } = options;
  let waitingCallers: Caller[] = [];
  let idleWaiters: (() => void)[] = [];
  let isScheduled = false;
  let isBatching = false;
  let microtaskFlushes = 0;
  let commits = 0;
  let checkedAt = -Infinity;

  return {
    apply(ops) {
      return new Promise((resolve, reject) => {
        waitingCallers.push({ ops, resolve, reject });
        if (!isScheduled) schedule();
      });
    },
    idle() {
      return isScheduled ? new Promise((resolve) => idleWaiters.push(resolve)) : Promise.resolve();
    },
  };

  function schedule(): void {
    isScheduled = true;
    if (isBatching || microtaskFlushes >= maxMicrotaskFlushesPerTick) {
      setImmediate(() => {
        isBatching = waitingCallers.length > 1;
        flush();
      });
      return;
    }
    if (microtaskFlushes === 0) {
      setImmediate(() => {
        microtaskFlushes = 0;
      });
    }
    microtaskFlushes += 1;
    queueMicrotask(flush);
  }

  function flush(deadline = monotonicMs() + waitMs): void {
    // If the last check found the files missing, check again before writing. Otherwise `checkFiles` runs after the commit.
    const fileError = files.lastError() === null ? null : files.check();
    if (fileError !== null) return rejectAll(takeWaiting(), fileError);
    try {
      connection.sql("begin immediate").run();
    } catch (error) {
      if (isBusy(error) && monotonicMs() < deadline) {
        // Callers that arrive meanwhile join this transaction.
        setTimeout(() => flush(deadline), randomDelayMs());
        return;
      }
      rejectAll(takeWaiting(), isBusy(error) ? createLockedError(connection.file, waitMs, error) : error);
      return;
    }
    commit(takeWaiting());
  }

  function takeWaiting(): Caller[] {
    const callers = waitingCallers;
    waitingCallers = [];
    isScheduled = false;
    for (const waiter of idleWaiters.splice(0)) waiter();
    return callers;
  }

  /** Runs inside an open transaction. */
  function commit(callers: Caller[]): void {
    const changes: ChangeSet = { runs: new Set<string>(), claimable: [], runnersWithOrders: new Set<string>() };
    try {
      const entries: AuditEntry[] = [];
      const tx = { now: options.now(), audit: entries, changes };
      const results = callers.map((caller) => caller.ops.map((op) => runWork(connection, options.applyOp(tx, op))));
      if (tx.changes.ended !== undefined) runWork(connection, options.countEnds(tx.changes.ended, tx.now));
      const head = entries.length === 0 ? null : runWork(connection, options.audit(entries, tx.now));
      connection.sql("commit").run();
      commits += 1;
      if (commits === longLivedCommits) connection.exec("pragma wal_autocheckpoint = 1000");
      const fileError = checkFiles();
      if (fileError !== null) return rejectAll(callers, fileError);
      if (head !== null) options.onCommit(head);
      callers.forEach((caller, index) => caller.resolve(results[index] ?? []));
    } catch (error) {
      rollBack(connection);
      retryIndividually(callers, error);
      return;
    }
    options.onChange(changes);
  }

  /**
   * Checks that the database files still exist under their names; if not, the caller must reject the commit. A long-lived
   * process checks only now and then: if the files disappear in between, the rescue also copies the commits since then.
   */
  function checkFiles(): HostError | null {
    const isRecent = commits > longLivedCommits && monotonicMs() - checkedAt < checkEveryMs;
    if (isRecent && files.lastError() === null) return null;
    checkedAt = monotonicMs();
    return files.check();
  }

  /** A host error fails all callers. Any other error comes from one of them, so each gets a transaction of its own. */
  function retryIndividually(callers: Caller[], cause: unknown): void {
    const error = toHostError(cause, connection.file);
    if (callers.length === 1 || error instanceof HostError) {
      rejectAll(callers, error);
      return;
    }
    for (const caller of callers) {
      try {
        connection.sql("begin immediate").run();
      } catch (retryError) {
        rejectAll([caller], retryError);
        continue;
      }
      commit([caller]);
    }
  }

  function rejectAll(callers: Caller[], cause: unknown): void {
    const error = toHostError(cause, connection.file);
    for (const caller of callers) caller.reject(error);
  }
}
