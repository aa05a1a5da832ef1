import { randomBytes } from "node:crypto";
import { HostError } from "../../model/errors.ts";
import type { Op, StoreResult } from "../../model/store.ts";
import type { AuditEntry } from "../audit/chain.ts";
import type { ChainHead } from "../audit/head.ts";
import type { ChangeSet } from "../transaction.ts";
import type { CommitWork, GroupCommit } from "../writer.ts";
import { runWork } from "./run-work.ts";
import { runOps } from "./run-ops.ts";
import type { Connection } from "./connection.ts";
import { rollBackAfter } from "./engine.ts";
import type { Link } from "./link.ts";
import { commit, lockForWriting, wasCommitted } from "./write-lock.ts";

interface Options extends CommitWork {
  link: Link;
  /** Replaces the database's clock. */
  now?: () => Date;
  /** Builds the notification that tells other coordinators about a commit. */
  createNotice(no: number, changes: ChangeSet): string;
}

interface Caller {
  ops: readonly Op[];
  resolve(results: StoreResult[]): void;
  reject(error: unknown): void;
}

interface CommitResult {
  results: StoreResult[][];
  head: ChainHead | null;
  changes: ChangeSet;
}

/** Operations per transaction. All other writers wait for it. */
const maxOps = 1000;

/** Runs one transaction for all waiting callers. While it runs, the next callers queue up. */
export function createGroupCommit(options: Options): GroupCommit {
  let waitingCallers: Caller[] = [];
  let idleWaiters: (() => void)[] = [];
  let isWorking = false;
  return {
    apply(ops) {
      return new Promise((resolve, reject) => {
        waitingCallers.push({ ops, resolve, reject });
        if (isWorking) return;
        isWorking = true;
        queueMicrotask(() => void drain());
      });
    },
    idle() {
      return isWorking ? new Promise((resolve) => idleWaiters.push(resolve)) : Promise.resolve();
    },
  };

  async function drain(): Promise<void> {
    while (waitingCallers.length > 0) await commitBatch(takeBatch());
    isWorking = false;
    for (const waiter of idleWaiters.splice(0)) waiter();
  }

  function takeBatch(): Caller[] {
    let ops = 0;
    const end = waitingCallers.findIndex((caller, index) => (ops += caller.ops.length) > maxOps && index > 0);
    const batch = end < 0 ? waitingCallers : waitingCallers.slice(0, end);
    waitingCallers = end < 0 ? [] : waitingCallers.slice(end);
    return batch;
  }

  /** Callers that arrived during an outage have already waited, so they fail with it instead of waiting twice as long. */
  function takeWaiting(): Caller[] {
    const callers = waitingCallers;
    waitingCallers = [];
    return callers;
  }

  /**
   * Never throws: each caller gets its own result. A host error fails all callers. Any other error comes from one of them,
   * so each is retried alone.
   */
  async function commitBatch(callers: Caller[]): Promise<void> {
    let result: CommitResult;
    try {
      result = await commitOnce(callers);
    } catch (error) {
      if (callers.length > 1 && !(error instanceof HostError))
        for (const caller of callers) await commitBatch([caller]);
      else
        for (const caller of [...callers, ...(error instanceof HostError ? takeWaiting() : [])]) caller.reject(error);
      return;
    }
    if (result.head !== null) options.onCommit(result.head);
    callers.forEach((caller, index) => caller.resolve(result.results[index] ?? []));
    options.onChange(result.changes);
  }

  /** Survives a broken connection: if a commit was not acknowledged, checks whether it happened before repeating it. */
  function commitOnce(callers: Caller[]): Promise<CommitResult> {
    let lastAttempt: { no: number; mark: string; done: CommitResult } | null = null;
    return options.link.use(async (connection) => {
      // A new mark for each attempt: the next one may get the same number.
      const mark = randomBytes(12).toString("hex");
      try {
        const { no, now } = await lockForWriting(connection, mark);
        if (lastAttempt !== null && (await wasCommitted(connection, lastAttempt.no, lastAttempt.mark))) {
          await connection.exec("rollback");
          return lastAttempt.done;
        }
        const result = await applyAll(connection, callers, options.now?.() ?? now);
        lastAttempt = { no, mark, done: result };
        await commit(connection, options.createNotice(no, result.changes));
        return result;
      } catch (error) {
        throw await rollBackAfter(connection, error);
      }
    });
  }

  async function applyAll(connection: Connection, callers: Caller[], now: Date): Promise<CommitResult> {
    const changes: ChangeSet = { runs: new Set(), claimable: [], runnersWithOrders: new Set() };
    const entries: AuditEntry[] = [];
    const tx = { now, audit: entries, changes };
    const results = await runOps(connection, callers, tx, options.applyOp);
    if (changes.ended !== undefined) await runWork(connection, options.countEnds(changes.ended, now));
    const head = entries.length === 0 ? null : await runWork(connection, options.audit(entries, now));
    return { results, head, changes };
  }
}
