import type { Work } from "../query.ts";
import { appendToChain, readChainEnd, type AuditEntry, type ChainEnd } from "./chain.ts";
import { formatHead, type ChainHead, type HeadFile } from "./head.ts";
import { contradictsHead, createMismatchEntry } from "./head-mismatch.ts";
import type { ComputeMac } from "../../model/hmac.ts";

/** How to seal the chain and where to store its head. `openHead` returns null for a record without head files. */
export interface Seal {
  computeMac: ComputeMac;
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
  advanceHeads(head: ChainHead): void;
  close(): void;
}

/**
 * Opens the chain for appending. If the chain does not match its head files, appending still works, so that a restored copy
 * or a lost file does not stop Drover; the chain then records the mismatch. The files are read before the first append.
 * Later appends compare with the head that this process wrote last. A record in PostgreSQL has no head files.
 */
export function openTrail({ computeMac, openHead, openHeadCopy, onMismatch }: Seal): Trail {
  const file = openHead();
  const copy = openHeadCopy?.() ?? null;
  let lastHead: ChainHead | null = null;
  let headState: HeadState = { state: "agrees" };
  let endBefore: ChainEnd | null = null;
  return {
    *append(entries, at) {
      const end = (endBefore = yield* readChainEnd());
      headState = yield* lastHead === null ? checkHeads(file, copy, end) : checkLastHead(lastHead, end);
      const withMismatch =
        headState.state === "mismatch" ? [createMismatchEntry(headState.head, end, at), ...entries] : entries;
      return yield* appendToChain(computeMac, end, withMismatch, at);
    },
    advanceHeads(reached) {
      if (headState.state === "mismatch") onMismatch?.(headState.head, endBefore?.last_no ?? 0);
      // Write the copy first: writing the head file may fail.
      if (copy) writeCopy(copy, headState.state === "mismatch", reached);
      // Do not overwrite the file; the next append reads it again.
      if (headState.state === "unreadable") throw headState.error;
      if (headState.state === "agrees") file?.advance(reached);
      else file?.replace(reached);
      lastHead = reached;
    },
    close() {
      file?.close();
      copy?.close();
    },
  };
}

/** Ignores file system errors: the copy is optional, and `drover state` reports if it is missing. */
function writeCopy(copy: HeadFile, replace: boolean, head: ChainHead): void {
  try {
    if (replace) copy.replace(head);
    else copy.advance(head);
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
  }
}

type HeadState =
  | { state: "agrees" }
  | { state: "new" }
  | { state: "mismatch"; head: ChainHead | "missing" }
  | { state: "unreadable"; error: unknown };

function* checkHeads(file: HeadFile | null, copy: HeadFile | null, end: ChainEnd): Work<HeadState> {
  const fileState = yield* checkHead(file, end);
  if (copy === null || (fileState.state !== "agrees" && fileState.state !== "new")) return fileState;
  const copyState = yield* checkHead(copy, end);
  return copyState.state === "mismatch" && copyState.head !== "missing" ? copyState : fileState;
}

function* checkHead(file: HeadFile | null, end: ChainEnd): Work<HeadState> {
  if (file === null) return { state: "agrees" };
  for (let previous = ""; ;) {
    let head: ChainHead | null;
    try {
      head = file.read();
    } catch (error) {
      return { state: "unreadable", error };
    }
    if (head === null) return end.last_no === 0 ? { state: "new" } : { state: "mismatch", head: "missing" };
    if (!(yield* contradictsHead(head, end))) return { state: "agrees" };
    // Other processes overwrite the file without the lock, so trust a mismatch only if two reads in a row agree.
    if (formatHead(head) === previous) return { state: "mismatch", head };
    previous = formatHead(head);
  }
}

/**
 * Compares the chain with the head that this process wrote last. A longer chain is fine: its seals prove what was added.
 */
function* checkLastHead(lastHead: ChainHead, end: ChainEnd): Work<HeadState> {
  const isCut = lastHead.count >= end.last_no && (yield* contradictsHead(lastHead, end));
  return isCut ? { state: "mismatch", head: lastHead } : { state: "agrees" };
}
