import type { Engine } from "../engine.ts";
import { runWork } from "./run-work.ts";
import { emptyNotice } from "./changes.ts";
import { type Connection, connect } from "./connection.ts";
import { toHostError, publicName } from "./errors.ts";
import { idleTransactionMs, maintenanceTimeoutMs } from "./limits.ts";
import { openLink } from "./link.ts";
import { searchStatements } from "./search-statements.ts";
import { commit, lockForWriting } from "./write-lock.ts";

export interface PostgresEngine extends Engine {
  readonly url: string;
  /** Uses one of the reading connections. The work may be repeated, so it must be safe to repeat. */
  ask<T>(work: (connection: Connection) => Promise<T>): Promise<T>;
  close(): void;
}

/** Many callers share these connections, so a few are enough. */
const readers = 3;

/** `me` identifies this process's commits to other processes. */
export function openPostgresEngine(url: string, waitMs: number, me = ""): PostgresEngine {
  const reading = Array.from({ length: readers }, () => openLink({ url, waitMs }));
  const paging = openLink({ url, waitMs });
  const writing = openLink({ url, waitMs, idleInTransactionMs: idleTransactionMs, answerMs: maintenanceTimeoutMs });
  let turn = 0;
  const ask: PostgresEngine["ask"] = (work) => {
    turn = (turn + 1) % readers;
    return reading[turn]!.use(work);
  };
  return {
    kind: "postgres",
    name: publicName(url),
    url,
    search: searchStatements,
    ask,
    read: (work) => ask((connection) => runWork(connection, work())),
    readPage: (work) => paging.use((connection) => runWork(connection, work())),
    snapshot: (work) =>
      withConnection(url, async (connection) => {
        await connection.exec("begin isolation level repeatable read read only");
        return runWork(connection, work());
      }),
    // Nothing else uses this link, so transactions run one after the other.
    write: serialize((work) =>
      writing.use(async (connection) => {
        try {
          const { no } = await lockForWriting(connection);
          const done = await runWork(connection, work());
          await commit(connection, emptyNotice(me, no));
          return done;
        } catch (error) {
          throw await rollBackAfter(connection, error);
        }
      }),
    ),
    close() {
      for (const link of [...reading, paging, writing]) link.close();
    },
  };
}

/** Rolls back and returns the first error: later ones in a transaction only say that it has failed. */
export async function rollBackAfter(connection: Connection, fault: unknown): Promise<unknown> {
  let cause = fault;
  try {
    await connection.settled();
  } catch (firstError) {
    cause = firstError;
  }
  if (!connection.broken) await connection.exec("rollback");
  return cause;
}

async function withConnection<T>(url: string, work: (connection: Connection) => Promise<T>): Promise<T> {
  let connection: Connection | null = null;
  try {
    // A suspended process must not keep the server from vacuuming deleted rows.
    connection = await connect(url, { idleInTransactionMs: maintenanceTimeoutMs });
    return await work(connection);
  } catch (error) {
    throw toHostError(error, url);
  } finally {
    connection?.end();
  }
}

function serialize(write: Engine["write"]): Engine["write"] {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(
      () => write(work),
      () => write(work),
    );
    last = mine;
    return mine;
  };
}
