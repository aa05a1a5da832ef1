import { HostError } from "../../model/errors.ts";

/** The address without user and password. */
export function getPublicName(url: string): string {
  try {
    const { protocol, hostname, port, pathname } = new URL(url);
    return `${protocol}//${hostname}${port === "" ? "" : `:${port}`}${pathname}`;
  } catch {
    return "the database";
  }
}

/**
 * Whether the connection was lost, or the server is starting up or shutting down, so that a retry on a new connection may
 * succeed.
 */
export function isUnavailable(error: unknown): boolean {
  const code = getErrorCode(error);
  if (code === null) return error instanceof Error && /connection|terminat|timeout/i.test(error.message);
  return unavailableCodes.has(code) || code.startsWith("08") || code.startsWith("57P");
}

const unavailableCodes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ENOENT",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EAI_AGAIN",
  "ENOTFOUND",
  "53300", // too many connections
  "25P03", // a transaction of Drover was idle for too long
  "25006", // now a standby: the next connection may reach the primary
  "55000", // the database does not accept connections, for example while it is restored
  "0A000", // a newer version of Drover changed the table after the statement was prepared
  "40001",
  "40P01",
]);

/** Turns PostgreSQL's errors about the host into HostErrors. Anything else is returned unchanged. */
export function toHostError(error: unknown, url: string): unknown {
  if (error instanceof HostError) return error;
  const code = getErrorCode(error) ?? "";
  const name = getPublicName(url);
  if (code === "53100") {
    return new HostError({
      code: "DROVER-STA-002",
      message: `The disk of ${name} is full.`,
      field: "DATABASE_URL",
      next: "Free some space on the database's disk. Nothing was partially stored.",
      cause: error,
    });
  }
  if (code === "55P03") {
    return new HostError({
      code: "DROVER-STA-003",
      message: `${name} is locked by another session: ${getErrorMessage(error)}.`,
      field: "DATABASE_URL",
      next: "Check pg_stat_activity for the session that holds a lock on Drover's tables. The request can be repeated.",
      cause: error,
    });
  }
  if (code.startsWith("28") || code === "3D000" || code === "42501" || isPasswordMissing(error)) {
    return new HostError({
      code: "DROVER-STA-006",
      message: `${name} cannot be used: ${getErrorMessage(error)}.`,
      field: "DATABASE_URL",
      next: "Check user, password (in the address, PGPASSWORD or ~/.pgpass) and database; the user must be allowed to create a schema.",
      cause: error,
    });
  }
  // Drover creates its schema and tables before it uses them.
  if (code === "42P01" || code === "3F000") {
    return new HostError({
      code: "DROVER-STA-006",
      message: `${name} cannot be used: ${getErrorMessage(error)}.`,
      field: "DATABASE_URL",
      next: "Something has removed Drover's tables. Stop all coordinators, and restore a backup into an empty database.",
      cause: error,
    });
  }
  if (code.startsWith("XX")) {
    return new HostError({
      code: "DROVER-STA-004",
      message: `${name} reports damage: ${getErrorMessage(error)}.`,
      field: "DATABASE_URL",
      next: "Check the server's log, and restore a backup if it reports data loss.",
      cause: error,
    });
  }
  if (isUnavailable(error)) return createUnavailableError(url, error);
  return error;
}

/** The driver itself rejects a missing password, without a code. */
function isPasswordMissing(error: unknown): boolean {
  return getErrorCode(error) === null && getErrorMessage(error).startsWith("SASL: ");
}

export function createUnavailableError(url: string, cause: unknown): HostError {
  return new HostError({
    code: "DROVER-STA-008",
    message: `${getPublicName(url)} cannot be reached: ${getErrorMessage(cause)}.`,
    field: "DATABASE_URL",
    next: "Check that the server is running, accepts connections and is not a read-only standby. The request can be repeated.",
    cause,
  });
}

export function createWrongSecretError(url: string): HostError {
  return new HostError({
    code: "DROVER-AUD-001",
    message: `The secret does not match: the record in ${getPublicName(url)} is sealed with another one.`,
    field: "DROVER_SECRET",
    next: "Set DROVER_SECRET to the secret of its other coordinators, or DROVER_SECRET_FILE to a file that contains it.",
  });
}

function getErrorCode(error: unknown): string | null {
  const code: unknown = error instanceof Error ? Reflect.get(error, "code") : null;
  return typeof code === "string" ? code : null;
}

function getErrorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
