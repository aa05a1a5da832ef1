import { monotonicMs } from "../../model/clock.ts";
import { HostError } from "../../model/errors.ts";
import type { Op, StoreResult } from "../../model/store.ts";
import type { AuditEntry } from "../audit/chain.ts";
import type { Changed } from "../transaction.ts";
import type { CommitWork, GroupCommit } from "../writer.ts";
import { rollBack } from "./write-lock.ts";
import { carryOut } from "./run-work.ts";
import type { Connection } from "./connection.ts";
import { hostFault, isBusy, stillLocked } from "./errors.ts";
import type { HeldFiles } from "./database-files.ts";
import { randomDelayMs } from "./with-retries.ts";

interface Options extends CommitWork {
  connection: Connection;
  waitMs: number;
  held: HeldFiles;
  now(): Date;
}

interface Caller {
  ops: readonly Op[];
  resolve(results: StoreResult[]): void;
  reject(fault: unknown): void;
}

/** After this many commits a process counts as long-lived, and its WAL may grow: see ./open-connection.ts. */
const longLivedCommits = 50;

/** How often a long-lived process checks that its files still exist. A new one checks with each commit. */
const checkEveryMs = 100;

/** Immediate transactions per turn of the event loop. Further callers are gathered until the turn ends. */
const promptPerTurn = 2;

/**
 * Runs one transaction for all callers that wait at the same time. A lone caller waits only for a microtask. Callers woken by
 * I/O arrive one by one within a turn of the event loop, so once a turn has brought several, they are gathered until its end.
 * Gathering also lets timers and I/O through when one caller writes without a pause.
 */
export function groupCommit(options: Options): GroupCommit {
  const { connection, waitMs, held } = options;
  let waiting: Caller[] = [];
  let idleWaiters: (() => void)[] = [];
  let scheduled = false;
  let gathers = false;
  let promptThisTurn = 0;
  let commits = 0;
  let checkedAt = -Infinity;

  return {
    apply(ops) {
      return new Promise((resolve, reject) => {
        waiting.push({ ops, resolve, reject });
        if (!scheduled) schedule();
      });
    },
    idle() {
      return scheduled ? new Promise((resolve) => idleWaiters.push(resolve)) : Promise.resolve();
    },
  };

  function schedule(): void {
    scheduled = true;
    if (gathers || promptThisTurn >= promptPerTurn) {
      setImmediate(() => {
        gathers = waiting.length > 1;
        flush();
      });
      return;
    }
    if (promptThisTurn === 0) {
      setImmediate(() => {
        promptThisTurn = 0;
      });
    }
    promptThisTurn += 1;
    queueMicrotask(flush);
  }

  function flush(deadline = monotonicMs() + waitMs): void {
    // Check again only after a loss: otherwise each commit checks afterwards.
    const lost = held.known() === null ? null : held.fault();
    if (lost !== null) return rejectAll(takeWaiting(), lost);
    try {
      connection.sql("begin immediate").run();
    } catch (error) {
      if (isBusy(error) && monotonicMs() < deadline) {
        // Callers that arrive meanwhile join this transaction.
        setTimeout(() => flush(deadline), randomDelayMs());
        return;
      }
      rejectAll(takeWaiting(), isBusy(error) ? stillLocked(connection.file, waitMs, error) : error);
      return;
    }
    commit(takeWaiting());
  }

  function takeWaiting(): Caller[] {
    const callers = waiting;
    waiting = [];
    scheduled = false;
    for (const waiter of idleWaiters.splice(0)) waiter();
    return callers;
  }

  /** Runs inside an open transaction. */
  function commit(callers: Caller[]): void {
    const changed: Changed = { runs: new Set<string>(), claimable: [], ordered: new Set<string>() };
    try {
      const entries: AuditEntry[] = [];
      const tx = { now: options.now(), audit: entries, changed };
      const results = callers.map((caller) => caller.ops.map((op) => carryOut(connection, options.applyOp(tx, op))));
      if (tx.changed.ended !== undefined) carryOut(connection, options.count(tx.changed.ended, tx.now));
      const head = entries.length === 0 ? null : carryOut(connection, options.audit(entries, tx.now));
      connection.sql("commit").run();
      commits += 1;
      if (commits === longLivedCommits) connection.exec("pragma wal_autocheckpoint = 1000");
      const lost = checkFiles();
      if (lost !== null) return rejectAll(callers, lost);
      if (head !== null) options.committed(head);
      callers.forEach((caller, index) => caller.resolve(results[index] ?? []));
    } catch (error) {
      rollBack(connection);
      failCallers(callers, error);
      return;
    }
    options.changed(changed);
  }

  /** Does not acknowledge a commit to files that nobody else can find any more. The rescue copies commits since the last check. */
  function checkFiles(): HostError | null {
    const fresh = commits > longLivedCommits && monotonicMs() - checkedAt < checkEveryMs;
    if (fresh && held.known() === null) return null;
    checkedAt = monotonicMs();
    return held.fault();
  }

  /** A host error fails all callers. Any other error belongs to one of them, so each is tried alone. */
  function failCallers(callers: Caller[], fault: unknown): void {
    const known = hostFault(fault, connection.file);
    if (callers.length === 1 || known instanceof HostError) {
      rejectAll(callers, known);
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

  function rejectAll(callers: Caller[], fault: unknown): void {
    const known = hostFault(fault, connection.file);
    for (const caller of callers) caller.reject(known);
  }
}
