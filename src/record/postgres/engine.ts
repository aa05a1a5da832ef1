import type { Engine } from "../engine.ts";
import { runWork } from "./run-work.ts";
import { createEmptyNotice } from "./changes.ts";
import { type Connection, connect } from "./connection.ts";
import { toHostError, getPublicName } from "./errors.ts";
import { idleTransactionMs, maintenanceTimeoutMs } from "./limits.ts";
import { openLink } from "./link.ts";
import { searchStatements } from "./search-statements.ts";
import { commit, lockForWriting } from "./write-lock.ts";

export interface PostgresEngine extends Engine {
  readonly url: string;
  /** Runs the work on one of the reading connections. The work may run more than once. */
  useReader<T>(work: (connection: Connection) => Promise<T>): Promise<T>;
  close(): void;
}

/** Many callers share these connections, so a few are enough. */
const readerCount = 3;

/** `instanceId` tells other processes which commits are from this one. */
export function openPostgresEngine(url: string, outageWaitMs: number, instanceId = ""): PostgresEngine {
  const readLinks = Array.from({ length: readerCount }, () => openLink({ url, outageWaitMs }));
  const pageLink = openLink({ url, outageWaitMs });
  const writeLink = openLink({
    url,
    outageWaitMs,
    idleInTransactionMs: idleTransactionMs,
    responseMs: maintenanceTimeoutMs,
  });
  let nextReader = 0;
  const useReader: PostgresEngine["useReader"] = (work) => {
    nextReader = (nextReader + 1) % readerCount;
    return readLinks[nextReader]!.use(work);
  };
  return {
    kind: "postgres",
    name: getPublicName(url),
    url,
    search: searchStatements,
    useReader,
    read: (work) => useReader((connection) => runWork(connection, work())),
    readPage: (work) => pageLink.use((connection) => runWork(connection, work())),
    snapshot: (work) =>
      withConnection(url, async (connection) => {
        await connection.exec("begin isolation level repeatable read read only");
        return runWork(connection, work());
      }),
    // Nothing else uses this link, so transactions run one after the other.
    write: serialize((work) =>
      writeLink.use(async (connection) => {
        try {
          const { no } = await lockForWriting(connection);
          const result = await runWork(connection, work());
          await commit(connection, createEmptyNotice(instanceId, no));
          return result;
        } catch (error) {
          throw await rollBackAfter(connection, error);
        }
      }),
    ),
    close() {
      for (const link of [...readLinks, pageLink, writeLink]) link.close();
    },
  };
}

/** Rolls back and returns the first error: later errors in a transaction only say that it has failed. */
export async function rollBackAfter(connection: Connection, error: unknown): Promise<unknown> {
  let cause = error;
  try {
    await connection.flush();
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
    const result = last.then(
      () => write(work),
      () => write(work),
    );
    last = result;
    return result;
  };
}
