import type { Work } from "../query.ts";
import { appendToChain, chainEnd, type AuditEntry, type ChainEnd } from "./chain.ts";
import { formatHead, type ChainHead, type HeadFile } from "./head.ts";
import { contradicts, mismatchEntry } from "./head-mismatch.ts";
import type { Mac } from "../../model/hmac.ts";

/** How to seal the chain, and where to keep its head; null if only the chain itself has it. */
export interface Seal {
  mac: Mac;
  openHead(): HeadFile | null;
  /** See `openHeadCopy` of ./head.ts. */
  openHeadCopy?: () => HeadFile | null;
  /** Called with the number of rows if the chain does not match a stored head. */
  onMismatch?: ((head: ChainHead | "missing", rows: number) => void) | undefined;
}

/** The chain and its head files, for a writer. */
export interface Trail {
  /** Seals the entries inside the current transaction, which must hold the write lock. */
  append(entries: readonly AuditEntry[], at: string): Work<ChainHead>;
  /** Call after the commit, with the result of `append`. */
  committed(reached: ChainHead): void;
  close(): void;
}

/**
 * A chain that does not match its heads is continued anyway, so that a restored copy or a lost file locks nobody out. The
 * chain then records the mismatch. The files are read once: under the lock they are never ahead, and afterwards this
 * process knows how far the chain has come.
 *
 * A record that is not on this machine has no head files. Then only that knowledge counts.
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
      found = yield* known === null ? checkHeads(file, copy, end) : checkKnown(known, end);
      const withMismatch = found.state === "mismatch" ? [mismatchEntry(found.head, end, at), ...entries] : entries;
      return yield* appendToChain(mac, end, withMismatch, at);
    },
    committed(reached) {
      if (found.state === "mismatch") onMismatch?.(found.head, atEnd?.last_no ?? 0);
      // Before the head file, which may not be writable.
      if (copy) writeCopy(copy, found.state === "mismatch", reached);
      // Leave the file alone; the next append reads it again.
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

/** A missing directory for the copy is not an error. `drover state` reports that there is no copy. */
function writeCopy(copy: HeadFile, replace: boolean, reached: ChainHead): void {
  try {
    if (replace) copy.replace(reached);
    else copy.advance(reached);
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
  }
}

type Found =
  | { state: "agrees" }
  | { state: "new" }
  | { state: "mismatch"; head: ChainHead | "missing" }
  | { state: "unreadable"; fault: unknown };

function* checkHeads(file: HeadFile | null, copy: HeadFile | null, end: ChainEnd): Work<Found> {
  const beside = yield* checkHead(file, end);
  if (copy === null || (beside.state !== "agrees" && beside.state !== "new")) return beside;
  const elsewhere = yield* checkHead(copy, end);
  return elsewhere.state === "mismatch" && elsewhere.head !== "missing" ? elsewhere : beside;
}

function* checkHead(file: HeadFile | null, end: ChainEnd): Work<Found> {
  if (file === null) return { state: "agrees" };
  for (let before = ""; ;) {
    let head: ChainHead | null;
    try {
      head = file.read();
    } catch (error) {
      return { state: "unreadable", fault: error };
    }
    if (head === null) return end.last_no === 0 ? { state: "new" } : { state: "mismatch", head: "missing" };
    if (!(yield* contradicts(head, end))) return { state: "agrees" };
    // Others overwrite it without the lock, so trust a mismatch only if two reads in a row agree.
    if (formatHead(head) === before) return { state: "mismatch", head };
    before = formatHead(head);
  }
}

/** Compares with what this process wrote last. If others have continued since, the seals have to prove it. */
function* checkKnown(known: ChainHead, end: ChainEnd): Work<Found> {
  const cut = known.count >= end.last_no && (yield* contradicts(known, end));
  return cut ? { state: "mismatch", head: known } : { state: "agrees" };
}
