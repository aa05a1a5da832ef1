import { lstatSync } from "node:fs";
import { RequestError } from "../../model/errors.ts";
import { auditHeadFile } from "../../model/state-layout.ts";
import { parseHead, readHead, readHeadCopy } from "./head.ts";
import type { BadPlace, CheckedPlace } from "./walk.ts";

/** Checks that a head recorded earlier is part of the chain. Each walk through the chain creates a new watch. */
export type HeadCheck = () => HeadWatch;

export interface HeadWatch {
  at(place: CheckedPlace): BadPlace | null;
  /** `last` is null if the chain is empty and has no anchor. */
  atEnd(last: CheckedPlace | null): BadPlace | null;
}

export interface KeptHeads {
  directory: string;
  /** See `openHeadCopy` of ./head.ts. */
  headCopy?: string | undefined;
  /** Given by the user. */
  head?: string | undefined;
}

export function headChecks({ directory, headCopy, head }: KeptHeads): HeadCheck[] {
  const kept = readHead(auditHeadFile(directory));
  return [
    kept === null ? () => missingFile : () => expected("audit.head", kept.count, kept.mac, true),
    ...(headCopy === undefined ? [] : copyChecks(headCopy)),
    ...(head === undefined ? [] : [givenHeadCheck(head)]),
  ];
}

/** The copy may be missing, but nothing else may be under its name. */
function copyChecks(file: string): HeadCheck[] {
  if (!fileExists(file)) return [];
  const kept = readHeadCopy(file);
  if (kept !== null) return [() => expected("the head kept outside the record", kept.count, kept.mac, true)];
  const what = `the head kept outside the record, ${file}, is not readable as one`;
  return [() => ({ at: () => null, atEnd: (last) => ({ batch_no: last?.batch_no ?? null, what }) })];
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

export function givenHeadCheck(given: string): HeadCheck {
  const parsed = parseHead(given);
  if (parsed === null) {
    throw new RequestError({
      code: "DROVER-USE-001",
      message: `Not a head of the audit chain: ${given}`,
      field: "head",
      next: "Give the head that an earlier audit verify printed: COUNT:MAC, or only the 64 hexadecimal digits of MAC.",
    });
  }
  return () => expected("the given head", parsed.count, parsed.mac, false);
}

/** audit.head is created before the first row, so if it is missing, somebody removed it. */
const missingFile: HeadWatch = {
  at: () => null,
  atEnd: (last) =>
    last === null || last.last_no === 0
      ? null
      : { batch_no: last.batch_no, what: "audit.head is missing or not readable as one" },
};

function expected(name: string, count: number | null, mac: string, mayBePruned: boolean): HeadWatch {
  let met = count === 0;
  return {
    at(place) {
      const here = Buffer.from(place.mac).toString("hex") === mac && place.batch_no > 0;
      if (count === null) {
        met ||= here;
        return null;
      }
      if (place.pruned_before !== null && count < place.last_no) {
        met = mayBePruned;
        return met
          ? null
          : {
              batch_no: place.batch_no,
              what: `${name} is before row ${place.last_no + 1}, the first that retention kept`,
            };
      }
      if (met || place.last_no < count) return null;
      met = here && place.last_no === count;
      return met
        ? null
        : { batch_no: place.batch_no, row_no: place.last_no, what: `the chain was rewritten: ${name} is not in it` };
    },
    atEnd(last) {
      if (met) return null;
      const rows = last?.last_no ?? 0;
      const lost =
        count === null
          ? "is not in the chain"
          : `says ${count} rows were written, and there are ${rows}: the end was cut off`;
      return { batch_no: last?.batch_no ?? null, row_no: rows + 1, what: `${name} ${lost}` };
    },
  };
}
