import { lstatSync } from "node:fs";
import { RequestError } from "../../model/errors.ts";
import { auditHeadFile } from "../../model/state-layout.ts";
import { parseHead, readHead, readHeadCopy } from "./head.ts";
import type { ChainDamage, VerifiedPosition } from "./walk.ts";

/** Checks that a head recorded earlier is part of the chain. Each walk through the chain creates a new watch. */
export type HeadCheck = () => HeadWatch;

export interface HeadWatch {
  onPosition(position: VerifiedPosition): ChainDamage | null;
  /** `last` is null if the chain is empty and has no anchor. */
  onEnd(last: VerifiedPosition | null): ChainDamage | null;
}

export interface StoredHeads {
  directory: string;
  /** See `openHeadCopy` of ./head.ts. */
  headCopy?: string | undefined;
  /** A head that the user passed. */
  head?: string | undefined;
}

export function createHeadChecks({ directory, headCopy, head }: StoredHeads): HeadCheck[] {
  const fileHead = readHead(auditHeadFile(directory));
  return [
    fileHead === null ? () => missingFileWatch : () => watchForHead("audit.head", fileHead.count, fileHead.mac, true),
    ...(headCopy === undefined ? [] : createCopyChecks(headCopy)),
    ...(head === undefined ? [] : [createHeadCheck(head)]),
  ];
}

/** A missing copy is not checked. A copy that does not contain a head is damage. */
function createCopyChecks(file: string): HeadCheck[] {
  if (!fileExists(file)) return [];
  const head = readHeadCopy(file);
  if (head !== null) return [() => watchForHead("the head stored outside the record", head.count, head.mac, true)];
  const what = `${file}, the copy of the head outside the record, does not contain a valid head`;
  return [() => ({ onPosition: () => null, onEnd: (last) => ({ batch_no: last?.batch_no ?? null, what }) })];
}

function fileExists(file: string): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    // This user cannot access the directory.
    if (error instanceof Error && "code" in error) return false;
    throw error;
  }
}

export function createHeadCheck(text: string): HeadCheck {
  const parsed = parseHead(text);
  if (parsed === null) {
    throw new RequestError({
      code: "DROVER-USE-001",
      message: `Invalid head of the audit chain: ${text}`,
      field: "head",
      next: "Pass the head that an earlier audit verify printed: COUNT:MAC, or only the 64 hexadecimal digits of MAC.",
    });
  }
  return () => watchForHead("the given head", parsed.count, parsed.mac, false);
}

/** Drover creates audit.head before the first row, so if it is missing, it was removed. */
const missingFileWatch: HeadWatch = {
  onPosition: () => null,
  onEnd: (last) =>
    last === null || last.last_no === 0
      ? null
      : { batch_no: last.batch_no, what: "audit.head is missing or does not contain a valid head" },
};

function watchForHead(name: string, count: number | null, mac: string, canBePruned: boolean): HeadWatch {
  let isFound = count === 0;
  return {
    onPosition(position) {
      const matches = Buffer.from(position.mac).toString("hex") === mac && position.batch_no > 0;
      if (count === null) {
        isFound ||= matches;
        return null;
      }
      if (position.pruned_before !== null && count < position.last_no) {
        isFound = canBePruned;
        return isFound
          ? null
          : {
              batch_no: position.batch_no,
              what: `${name} is before row ${position.last_no + 1}, the first row that retention did not remove`,
            };
      }
      if (isFound || position.last_no < count) return null;
      isFound = matches && position.last_no === count;
      return isFound
        ? null
        : {
            batch_no: position.batch_no,
            row_no: position.last_no,
            what: `the chain was rewritten: ${name} is not in it`,
          };
    },
    onEnd(last) {
      if (isFound) return null;
      const rows = last?.last_no ?? 0;
      const problem =
        count === null
          ? "is not in the chain"
          : `records ${count} rows, but the chain has only ${rows}: its end was cut off`;
      return { batch_no: last?.batch_no ?? null, row_no: rows + 1, what: `${name} ${problem}` };
    },
  };
}
