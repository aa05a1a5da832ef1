import type { Work } from "../query.ts";
import { appendToChain, chainEnd, type AuditEntry, type ChainEnd } from "./chain.ts";
import { formatHead, type ChainHead, type HeadFile } from "./head.ts";
import { contradicts, mismatchEntry } from "./head-mismatch.ts";
import type { Mac } from "./hmac.ts";

/** The chain and the head beside it, for one that writes. */
export interface Trail {
  /** Seals the entries inside the current transaction, which must hold the write lock. */
  append(entries: readonly AuditEntry[], at: string): Work<ChainHead>;
  /** After the commit of what `append` has returned. */
  committed(reached: ChainHead): void;
  close(): void;
}

/**
 * A chain that is not the one of its head is continued, as nobody must be locked out by a restored
 * copy or a lost file; but the chain itself tells of it from then on. audit.head is asked once, as
 * under the lock it is never ahead; later this process knows itself how far the chain had come.
 *
 * `file` is null where nothing of the record lies on this machine: then only that knowledge is left.
 */
export function openTrail(file: HeadFile | null, mac: Mac): Trail {
  let known: ChainHead | null = null;
  let found: Found = { state: "agrees" };
  return {
    *append(entries, at) {
      const end = yield* chainEnd();
      found = yield* known === null ? lookAtFile(file, end) : lookBack(known, end);
      const told = found.state === "mismatch" ? [mismatchEntry(found.head, end, at), ...entries] : entries;
      return yield* appendToChain(mac, end, told, at);
    },
    committed(reached) {
      // Left as it is, and asked again by the next append.
      if (found.state === "unreadable") throw found.fault;
      if (found.state === "agrees") file?.advance(reached);
      else file?.replace(reached);
      known = reached;
    },
    close: () => file?.close(),
  };
}

type Found =
  | { state: "agrees" }
  | { state: "new" }
  | { state: "mismatch"; head: ChainHead | "missing" }
  | { state: "unreadable"; fault: unknown };

function* lookAtFile(file: HeadFile | null, end: ChainEnd): Work<Found> {
  if (file === null) return { state: "agrees" };
  for (let before = ""; ;) {
    let head: ChainHead | null;
    try {
      head = file.read();
    } catch (fault) {
      return { state: "unreadable", fault };
    }
    if (head === null) return end.last_no === 0 ? { state: "new" } : { state: "mismatch", head: "missing" };
    if (!(yield* contradicts(head, end))) return { state: "agrees" };
    // Others overwrite it without the lock: only what is read twice in a row was not half written.
    if (formatHead(head) === before) return { state: "mismatch", head };
    before = formatHead(head);
  }
}

/** Where others have come further since, that is for the seals to prove. */
function* lookBack(known: ChainHead, end: ChainEnd): Work<Found> {
  const cut = known.count >= end.last_no && (yield* contradicts(known, end));
  return cut ? { state: "mismatch", head: known } : { state: "agrees" };
}
