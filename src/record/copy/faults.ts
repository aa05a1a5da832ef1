import { HostError, RequestError } from "../../model/errors.ts";

/** A record is never copied over another. */
export function occupied(name: string, table: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    message: `There is a record in ${name} already: its table ${table} is not empty.`,
    field: name,
    next: "Give an empty database. A record is never written over another. Nothing was changed.",
  });
}

/** `what`: a table, or contents. Faults that say themselves what they are stay as they are. */
export function notCopied(what: string, fault: unknown): unknown {
  const code: unknown = fault instanceof Error ? Reflect.get(fault, "code") : null;
  if (typeof code === "string" && code.startsWith("DROVER-")) return fault;
  return new HostError({
    code: "DROVER-STA-009",
    message: `${what} could not be copied: ${fault instanceof Error ? fault.message : String(fault)}.`,
    field: what,
    next: "Nothing of the copy was kept, and the original is as it was. Mend what the message says, then try again.",
    cause: fault,
  });
}

export function notTheSame(name: string, differences: number, first: string): HostError {
  return new HostError({
    code: "DROVER-STA-009",
    message: `The copy in ${name} is not the same in ${differences} place${differences === 1 ? "" : "s"}, first: ${first}.`,
    field: name,
    next: "Nothing of the copy was kept, and the original is as it was. Try again; where it stays so, report it.",
  });
}

export function damagedContent(name: string, sha256: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    message: `The contents of the file ${sha256} are not the ones that were stored: ${name} was changed.`,
    field: sha256,
    next: "Take that file from a backup; or, where there is none, move it away: its run then has a file without contents. Nothing was changed.",
  });
}
