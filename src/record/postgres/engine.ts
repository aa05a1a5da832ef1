import type { Engine } from "../engine.ts";
import { carryOut } from "./carry-out.ts";
import { emptyNotice } from "./changes.ts";
import { type Client, connect } from "./client.ts";
import { hostFault, publicName } from "./faults.ts";
import { longestPauseMs, longestTidyingMs } from "./limits.ts";
import { openLink } from "./link.ts";
import { searchStatements } from "./search-statements.ts";
import { commit, lockForWriting } from "./write-lock.ts";

export interface PostgresEngine extends Engine {
  readonly url: string;
  /** Uses one of the reading connections. The work may be repeated, so it must be safe to repeat. */
  ask<T>(work: (client: Client) => Promise<T>): Promise<T>;
  close(): void;
}

/** Many callers share these connections, so a few are enough. */
const readers = 3;

/** `me` identifies this process's commits to other processes. */
export function openPostgresEngine(url: string, waitMs: number, me = ""): PostgresEngine {
  const reading = Array.from({ length: readers }, () => openLink({ url, waitMs }));
  const paging = openLink({ url, waitMs });
  const writing = openLink({ url, waitMs, idleInTransactionMs: longestPauseMs, answerMs: longestTidyingMs });
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
    read: (work) => ask((client) => carryOut(client, work())),
    readPage: (work) => paging.use((client) => carryOut(client, work())),
    snapshot: (work) =>
      onItsOwn(url, async (client) => {
        await client.exec("begin isolation level repeatable read read only");
        return carryOut(client, work());
      }),
    // Nothing else uses this link, so transactions run one after the other.
    write: inTurn((work) =>
      writing.use(async (client) => {
        try {
          const { no } = await lockForWriting(client);
          const done = await carryOut(client, work());
          await commit(client, emptyNotice(me, no));
          return done;
        } catch (fault) {
          throw await rolledBack(client, fault);
        }
      }),
    ),
    close() {
      for (const link of [...reading, paging, writing]) link.close();
    },
  };
}

/** Rolls back and returns the first error: later ones in a transaction only say that it has failed. */
export async function rolledBack(client: Client, fault: unknown): Promise<unknown> {
  let cause = fault;
  try {
    await client.settled();
  } catch (earlier) {
    cause = earlier;
  }
  if (!client.broken) await client.exec("rollback");
  return cause;
}

async function onItsOwn<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  let client: Client | null = null;
  try {
    // A suspended process must not keep the server from vacuuming deleted rows.
    client = await connect(url, { idleInTransactionMs: longestTidyingMs });
    return await work(client);
  } catch (fault) {
    throw hostFault(fault, url);
  } finally {
    client?.end();
  }
}

function inTurn(write: Engine["write"]): Engine["write"] {
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
