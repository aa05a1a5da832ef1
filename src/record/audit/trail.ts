import type { Work } from "../query.ts";
import { appendToChain, chainEnd, type AuditEntry, type ChainEnd } from "./chain.ts";
import { formatHead, type ChainHead, type HeadFile } from "./head.ts";
import { contradicts, mismatchEntry } from "./head-mismatch.ts";
import type { Mac } from "../../model/hmac.ts";

/** How the chain is sealed, and where its head is kept; null: nowhere but in the chain. */
export interface Seal {
  mac: Mac;
  openHead(): HeadFile | null;
  /** See `openHeadCopy` of ./head.ts. */
  openHeadCopy?: () => HeadFile | null;
  /** The chain is not the one of a head that was kept: so many rows it has. */
  onMismatch?: ((head: ChainHead | "missing", rows: number) => void) | undefined;
}

/** The chain and the head beside it, for one that writes. */
export interface Trail {
  /** Seals the entries inside the current transaction, which must hold the write lock. */
  append(entries: readonly AuditEntry[], at: string): Work<ChainHead>;
  /** After the commit of what `append` has returned. */
  committed(reached: ChainHead): void;
  close(): void;
}

/**
 * A chain that is not the one of its heads is continued, as nobody must be locked out by a restored
 * copy or a lost file; but the chain itself tells of it from then on. The files are asked once, as
 * under the lock they are never ahead; later this process knows itself how far the chain had come.
 *
 * Where nothing of the record lies on this machine there are none: then only that knowledge is left.
 */
export function openTrail({ mac, openHead, openHeadCopy, onMismatch }: Seal): Trail {
  const file = openHead();
  const copy = openHeadCopy?.() ?? null;
  let known: ChainHead | null = null;
  let found: Found = { state: "agrees" };
  let atEnd: ChainEnd | null = null;
  return {
    *append(entries, at) {
      const end = (atEnd = yield* chainEnd());
      found = yield* known === null ? lookAtFiles(file, copy, end) : lookBack(known, end);
      const told = found.state === "mismatch" ? [mismatchEntry(found.head, end, at), ...entries] : entries;
      return yield* appendToChain(mac, end, told, at);
    },
    committed(reached) {
      if (found.state === "mismatch") onMismatch?.(found.head, atEnd?.last_no ?? 0);
      // Before the file, which may not be writable.
      if (copy) keepCopy(copy, found.state === "mismatch", reached);
      // Left as it is, and asked again by the next append.
      if (found.state === "unreadable") throw found.fault;
      if (found.state === "agrees") file?.advance(reached);
      else file?.replace(reached);
      known = reached;
    },
    close() {
      file?.close();
      copy?.close();
    },
  };
}

/** A user without a folder for the copy still has a record; `drover state` says that there is no copy. */
function keepCopy(copy: HeadFile, replace: boolean, reached: ChainHead): void {
  try {
    if (replace) copy.replace(reached);
    else copy.advance(reached);
  } catch (fault) {
    if (!(fault instanceof Error && "code" in fault)) throw fault;
  }
}

type Found =
  | { state: "agrees" }
  | { state: "new" }
  | { state: "mismatch"; head: ChainHead | "missing" }
  | { state: "unreadable"; fault: unknown };

function* lookAtFiles(file: HeadFile | null, copy: HeadFile | null, end: ChainEnd): Work<Found> {
  const beside = yield* lookAtFile(file, end);
  if (copy === null || (beside.state !== "agrees" && beside.state !== "new")) return beside;
  const elsewhere = yield* lookAtFile(copy, end);
  return elsewhere.state === "mismatch" && elsewhere.head !== "missing" ? elsewhere : beside;
}

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
