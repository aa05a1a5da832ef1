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
  /** One of the connections for reading: whatever is asked over it may be asked twice. */
  ask<T>(work: (client: Client) => Promise<T>): Promise<T>;
  close(): void;
}

/** Statements of many callers share them, so that few do. */
const readers = 3;

/** `me`: by which other processes know who it was that committed. */
export function openPostgresEngine(url: string, waitMs: number, me = ""): PostgresEngine {
  const reading = Array.from({ length: readers }, () => openLink({ url, waitMs }));
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
    snapshot: (work) =>
      onItsOwn(url, async (client) => {
        await client.exec("begin isolation level repeatable read read only");
        return carryOut(client, work());
      }),
    // Nothing is sent by others over this link: it is one transaction after the other.
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
      for (const link of [...reading, writing]) link.close();
    },
  };
}

/** Gives the fault that came first: what follows one in a transaction only says that there was one. */
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
    // Whoever is suspended in the middle must not keep the server from clearing away what others delete.
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
