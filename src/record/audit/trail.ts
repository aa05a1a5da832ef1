import type { Connection } from "../sqlite/connection.ts";
import { appendToChain, chainEnd, type AuditEntry, type ChainEnd } from "./chain.ts";
import { formatHead, openHead, type ChainHead, type HeadFile } from "./head.ts";
import { contradicts, mismatchEntry } from "./head-mismatch.ts";
import type { Mac } from "./hmac.ts";

/** The chain and the head beside it, for one that writes. */
export interface Trail {
  /** Seals the entries inside the current transaction, which must hold the write lock. */
  append(entries: readonly AuditEntry[], at: string): ChainHead;
  /** After the commit of what `append` has returned. */
  committed(reached: ChainHead): void;
  close(): void;
}

/**
 * A chain that is not the one of its head is continued, as nobody must be locked out by a restored
 * copy or a lost file; but the chain itself tells of it from then on. audit.head is asked once, as
 * under the lock it is never ahead; later this process knows itself how far the chain had come.
 */
export function openTrail(directory: string, connection: Connection, mac: Mac): Trail {
  const file = openHead(directory);
  let known: ChainHead | null = null;
  let found: Found = { state: "agrees" };
  return {
    append(entries, at) {
      const end = chainEnd(connection);
      found = known === null ? lookAtFile(file, connection, end) : lookBack(known, connection, end);
      const told = found.state === "mismatch" ? [mismatchEntry(found.head, end, at), ...entries] : entries;
      return appendToChain(connection, mac, end, told, at);
    },
    committed(reached) {
      // Left as it is, and asked again by the next append.
      if (found.state === "unreadable") throw found.fault;
      if (found.state === "agrees") file.advance(reached);
      else file.replace(reached);
      known = reached;
    },
    close: file.close,
  };
}

type Found =
  | { state: "agrees" }
  | { state: "new" }
  | { state: "mismatch"; head: ChainHead | "missing" }
  | { state: "unreadable"; fault: unknown };

function lookAtFile(file: HeadFile, connection: Connection, end: ChainEnd): Found {
  for (let before = ""; ;) {
    let head: ChainHead | null;
    try {
      head = file.read();
    } catch (fault) {
      return { state: "unreadable", fault };
    }
    if (head === null) return end.last_no === 0 ? { state: "new" } : { state: "mismatch", head: "missing" };
    if (!contradicts(connection, head, end)) return { state: "agrees" };
    // Others overwrite it without the lock: only what is read twice in a row was not half written.
    if (formatHead(head) === before) return { state: "mismatch", head };
    before = formatHead(head);
  }
}

/** Where others have come further since, that is for the seals to prove. */
function lookBack(known: ChainHead, connection: Connection, end: ChainEnd): Found {
  const cut = known.count >= end.last_no && contradicts(connection, known, end);
  return cut ? { state: "mismatch", head: known } : { state: "agrees" };
}
