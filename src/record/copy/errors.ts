import { HostError, RequestError } from "../../model/errors.ts";

/** A record is never copied over another. */
export function createNotEmptyError(name: string, table: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    message: `${name} already contains a record: its table ${table} is not empty.`,
    field: name,
    next: "Use an empty database: an existing record is never overwritten. Nothing was changed.",
  });
}

/**
 * `what` starts the message, for example "The table runs". Errors that already have a Drover code are returned unchanged.
 */
export function toCopyError(what: string, error: unknown): unknown {
  const code: unknown = error instanceof Error ? Reflect.get(error, "code") : null;
  if (typeof code === "string" && code.startsWith("DROVER-")) return error;
  return new HostError({
    code: "DROVER-STA-009",
    message: `${what} could not be copied: ${error instanceof Error ? error.message : String(error)}.`,
    field: what,
    next: "The copy was discarded and the original is unchanged. Fix the cause and try again.",
    cause: error,
  });
}

export function createDifferenceError(name: string, differences: number, first: string): HostError {
  return new HostError({
    code: "DROVER-STA-009",
    message: `The copy in ${name} differs in ${differences} place${differences === 1 ? "" : "s"}, first: ${first}.`,
    field: name,
    next: "The copy was discarded and the original is unchanged. Try again; if it happens again, report it.",
  });
}

export function createChangedContentError(name: string, sha256: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    message: `The contents of the file ${sha256} in ${name} have changed since they were stored.`,
    field: sha256,
    next: "Nothing was changed. Restore the file from a backup. If you have none, move it out of the record: its run then lists a file without contents.",
  });
}
