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
  /** The notification for other coordinators about a commit. */
  notice(no: number, changes: ChangeSet): string;
}

interface Caller {
  ops: readonly Op[];
  resolve(results: StoreResult[]): void;
  reject(fault: unknown): void;
}

interface Done {
  results: StoreResult[][];
  head: ChainHead | null;
  changes: ChangeSet;
}

/** Operations per transaction. All other writers wait for that long. */
const mostOps = 1000;

/** Runs one transaction for all waiting callers. While it runs, the next callers queue up. */
export function groupCommit(options: Options): GroupCommit {
  let waiting: Caller[] = [];
  let idleWaiters: (() => void)[] = [];
  let working = false;
  return {
    apply(ops) {
      return new Promise((resolve, reject) => {
        waiting.push({ ops, resolve, reject });
        if (working) return;
        working = true;
        queueMicrotask(() => void drain());
      });
    },
    idle() {
      return working ? new Promise((resolve) => idleWaiters.push(resolve)) : Promise.resolve();
    },
  };

  async function drain(): Promise<void> {
    while (waiting.length > 0) await store(takeBatch());
    working = false;
    for (const waiter of idleWaiters.splice(0)) waiter();
  }

  function takeBatch(): Caller[] {
    let ops = 0;
    const fits = waiting.findIndex((caller, index) => (ops += caller.ops.length) > mostOps && index > 0);
    const taken = fits < 0 ? waiting : waiting.slice(0, fits);
    waiting = fits < 0 ? [] : waiting.slice(fits);
    return taken;
  }

  /** Callers that arrived meanwhile have already waited through this outage, so they fail with it instead of waiting twice as long. */
  function takeLate(): Caller[] {
    const late = waiting;
    waiting = [];
    return late;
  }

  /** Never throws: each caller gets its own result. A host error fails all callers. Any other error belongs to one of them, so each is tried alone. */
  async function store(callers: Caller[]): Promise<void> {
    let done: Done;
    try {
      done = await commitOnce(callers);
    } catch (error) {
      if (callers.length > 1 && !(error instanceof HostError)) for (const caller of callers) await store([caller]);
      else for (const caller of [...callers, ...(error instanceof HostError ? takeLate() : [])]) caller.reject(error);
      return;
    }
    if (done.head !== null) options.onCommit(done.head);
    callers.forEach((caller, index) => caller.resolve(done.results[index] ?? []));
    options.onChange(done.changes);
  }

  /** Survives a broken connection: a commit without an answer is looked up, not repeated. */
  function commitOnce(callers: Caller[]): Promise<Done> {
    let sent: { no: number; mark: string; done: Done } | null = null;
    return options.link.use(async (connection) => {
      // A new mark for each attempt: the next one may get the same number.
      const mark = randomBytes(12).toString("hex");
      try {
        const { no, now } = await lockForWriting(connection, mark);
        if (sent !== null && (await wasCommitted(connection, sent.no, sent.mark))) {
          await connection.exec("rollback");
          return sent.done;
        }
        const done = await carryOutAll(connection, callers, options.now?.() ?? now);
        sent = { no, mark, done };
        await commit(connection, options.notice(no, done.changes));
        return done;
      } catch (error) {
        throw await rollBackAfter(connection, error);
      }
    });
  }

  async function carryOutAll(connection: Connection, callers: Caller[], now: Date): Promise<Done> {
    const changes: ChangeSet = { runs: new Set(), claimable: [], ordered: new Set() };
    const entries: AuditEntry[] = [];
    const tx = { now, audit: entries, changes };
    const results = await runOps(connection, callers, tx, options.applyOp);
    if (changes.ended !== undefined) await runWork(connection, options.countEnds(changes.ended, now));
    const head = entries.length === 0 ? null : await runWork(connection, options.audit(entries, now));
    return { results, head, changes };
  }
}
