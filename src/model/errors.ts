/**
 * Drover throws only the three error classes below; every other failure is returned as a result. `code` is stable and
 * documented in docs/errors.md. `next` tells the user what to do about the error.
 */
interface ErrorDetails {
  code: ErrorCode;
  message: string;
  /** The option, key or path that caused the error, if any. */
  field?: string;
  next?: string;
  cause?: unknown;
}

/** A RequestError or a HostError. */
export abstract class DroverError extends Error {
  readonly code: ErrorCode;
  readonly field: string | undefined;
  readonly next: string | undefined;
  constructor(fault: ErrorDetails) {
    super(fault.message, fault.cause === undefined ? undefined : { cause: fault.cause });
    this.code = fault.code;
    this.field = fault.field;
    this.next = fault.next;
  }
  static override [Symbol.hasInstance](value: unknown): value is DroverError {
    return isDroverError(value, "RequestError") || isDroverError(value, "HostError");
  }
}

/** Compares by name, because each bundle has its own copy of these classes and may catch another bundle's errors. */
function isDroverError(value: unknown, name: string): boolean {
  return value instanceof Error && value.name === name && String(Reflect.get(value, "code")).startsWith("DROVER-");
}

/** The request is invalid. The caller can fix it. */
export class RequestError extends DroverError {
  override readonly name = "RequestError";
  static override [Symbol.hasInstance](value: unknown): value is RequestError {
    return isDroverError(value, "RequestError");
  }
}

/** The machine, disk or database cannot do this now. The operator can fix it. */
export class HostError extends DroverError {
  override readonly name = "HostError";
  static override [Symbol.hasInstance](value: unknown): value is HostError {
    return isDroverError(value, "HostError");
  }
}

/** An invariant was violated. This is a bug in Drover. */
export class BugError extends Error {
  override readonly name = "BugError";
  readonly code = "DROVER-BUG-001";
}

/** Every code with its meaning in one line. A code is never reused or renumbered. */
export const errorCodes = {
  "DROVER-EXE-001": "command not found",
  "DROVER-EXE-002": "timeout exceeded",
  "DROVER-EXE-003": "process failed (non-zero exit or signal)",
  "DROVER-EXE-004": "output too large",
  "DROVER-EXE-005": "command not executable",
  "DROVER-EXE-006": "argument list too long",
  "DROVER-EXE-007": "isolation level not available on this host",
  "DROVER-EXE-008": "limit not available on this host",
  "DROVER-EXE-009": "limit exceeded",
  "DROVER-EXE-010": "process could not be started",
  "DROVER-EXE-011": "command stopped before it finished",
  "DROVER-USE-001": "invalid usage",
  "DROVER-USE-002": "empty command",
  "DROVER-USE-003": "working directory missing",
  "DROVER-USE-004": "not a directory",
  "DROVER-USE-005": "not a positive duration",
  "DROVER-USE-006": "NUL byte in an argument or variable",
  "DROVER-USE-007": "unknown option or command",
  "DROVER-USE-008": "not found",
  "DROVER-USE-009": "not a valid variable",
  "DROVER-USE-010": "not a valid limit",
  "DROVER-USE-011": "working directory cannot be entered",
  "DROVER-USE-012": "files already exist",
  "DROVER-CFG-001": "configuration cannot be read",
  "DROVER-CFG-002": "configuration is not valid YAML",
  "DROVER-CFG-003": "unknown configuration key",
  "DROVER-CFG-004": "configuration value has the wrong type",
  "DROVER-CFG-005": "configuration over a limit: bytes, keys, depth or aliases",
  "DROVER-TRU-001": "trust file cannot be used",
  "DROVER-TRU-002": "directory cannot be trusted: every user can write to it",
  "DROVER-OUT-001": "output cannot be written",
  "DROVER-STA-001": "state directory cannot be written",
  "DROVER-STA-002": "no space left",
  "DROVER-STA-003": "database locked",
  "DROVER-STA-004": "database damaged",
  "DROVER-STA-005": "database created by a newer Drover",
  "DROVER-STA-006": "database cannot be opened",
  "DROVER-STA-007": "SQLite cannot be loaded on this machine, or was built without FTS5, which search needs",
  "DROVER-STA-008": "PostgreSQL cannot be reached",
  "DROVER-STA-009": "record could not be copied completely",
  "DROVER-STA-010": "record does not respond in time",
  "DROVER-STA-011": "a coordinator already serves this state directory",
  "DROVER-STA-012": "database deleted, moved or replaced while in use",
  "DROVER-STA-013": "state directory of an earlier version, or partly moved",
  "DROVER-STA-014": "state directory cannot be moved now",
  "DROVER-STA-015": "no place for the state directory: the user has no home directory",
  "DROVER-STA-016": "nested command cannot be recorded in its run",
  "DROVER-AUD-001": "audit key missing, unreadable, not private or owned by another user",
  "DROVER-AUD-002": "audit chain broken",
  "DROVER-AGT-001": "agent file or directory cannot be read",
  "DROVER-AGT-002": "agent file is not valid JSON, YAML or markdown",
  "DROVER-AGT-003": "unknown key in an agent",
  "DROVER-AGT-004": "agent value missing or invalid",
  "DROVER-AGT-005": "two agents with the same name in one directory",
  "DROVER-AGT-006": "agent's JSON Schema invalid or over a limit",
  "DROVER-AGT-007": "variable in an agent not allowed or not set",
  "DROVER-AGT-008": "fleet file includes a file twice, or itself",
  "DROVER-AGT-009": "definition over a limit: bytes, keys, depth or aliases",
  "DROVER-AGT-010": "definition held: added or changed while Drover was serving",
  "DROVER-PRF-001": "profile not found",
  "DROVER-PRF-002": "profile cannot be read, or is not valid JSON or YAML",
  "DROVER-PRF-003": "unknown key in a profile",
  "DROVER-PRF-004": "profile value missing or invalid",
  "DROVER-PRF-005": "profile's command or module not found",
  "DROVER-PRF-006": "two profiles with the same name in one directory",
  "DROVER-PRF-007": "profile over a limit: bytes, keys, depth or aliases",
  "DROVER-PAR-001": "value does not match its JSON Schema",
  "DROVER-PAR-002": "parameter cannot be passed on a command line",
  "DROVER-PAR-003": "parameters too large, nested too deeply or with a forbidden key",
  "DROVER-PAR-004": "value could not be checked in time",
  "DROVER-PAR-005": "number that JavaScript cannot represent exactly",
  "DROVER-PAR-006": "parameters are not a JSON object in UTF-8",
  "DROVER-PAR-007": "redaction mark in place of a secret",
  "DROVER-SCH-001": "schedule never due, or with an invalid cron expression, interval or timezone",
  "DROVER-SCH-002": "schedule defined by an agent: change it there",
  "DROVER-SCH-003": "schedule name taken, or schedule changed at the same time",
  "DROVER-SUB-001": "unknown agent",
  "DROVER-SUB-002": "agent cannot resume or fork a session, or has no model",
  "DROVER-SUB-003": "session missing, unknown, or of another agent or executor",
  "DROVER-SUB-004": "idempotency key used for another request",
  "DROVER-SUB-005": "request's demands conflict with those of the agent or the session, or are too long",
  "DROVER-SUB-006": "session expired",
  "DROVER-SUB-007": "runs nested too deeply",
  "DROVER-SUB-008": "the submitting run is being stopped",
  "DROVER-SUB-009": "too many unfinished runs started by one run",
  "DROVER-API-001": "body is not valid JSON",
  "DROVER-API-002": "body is not application/json",
  "DROVER-API-003": "body too large",
  "DROVER-API-004": "JSON nested too deeply",
  "DROVER-API-005": "forbidden key in JSON",
  "DROVER-API-006": "request does not match its schema",
  "DROVER-API-007": "unknown route",
  "DROVER-API-008": "method not allowed on this route",
  "DROVER-API-009": "token missing or unknown",
  "DROVER-API-010": "token expired or revoked",
  "DROVER-API-011": "not allowed with this token",
  "DROVER-API-012": "host name not accepted",
  "DROVER-API-013": "origin not accepted",
  "DROVER-API-014": "not found",
  "DROVER-API-015": "cursor does not belong to this list",
  "DROVER-API-016": "runner not registered",
  "DROVER-API-017": "registration replaced by a newer one",
  "DROVER-API-018": "another live runner has this identity",
  "DROVER-API-019": "enrolment token cannot be used",
  "DROVER-API-020": "agent defined in a file, which the API cannot change",
  "DROVER-API-021": "agent name ambiguous",
  "DROVER-API-022": "session bound to another executor session",
  "DROVER-API-023": "coordinator unreachable",
  "DROVER-API-024": "coordinator temporarily unavailable",
  "DROVER-API-025": "address beyond loopback without authentication",
  "DROVER-API-026": "cannot listen on this address",
  "DROVER-API-027": "token file unreadable, not private or owned by another user",
  "DROVER-API-028": "response not understood",
  "DROVER-API-029": "request malformed",
  "DROVER-API-030": "not possible in this state",
  "DROVER-API-031": "question already answered",
  "DROVER-API-032": "question expired or superseded",
  "DROVER-API-033": "executor accepts no input",
  "DROVER-API-034": "coordinator has not proved that it knows this token",
  "DROVER-API-035": "coordinator address invalid or not encrypted",
  "DROVER-LIM-001": "too many open requests or unread responses",
  "DROVER-LIM-002": "caller's limit for slow schema checks exceeded",
  "DROVER-MCP-001": "too many open MCP calls",
  "DROVER-MCP-002": "unknown MCP tool",
  "DROVER-HOK-001": "hook unknown, or signature missing or invalid",
  "DROVER-HOK-002": "signature too old, or from the future",
  "DROVER-HOK-003": "delivery already received",
  "DROVER-HOK-004": "delivery body does not match its hook",
  "DROVER-HOK-005": "too many deliveries",
  "DROVER-HOK-006": "hook or webhook name already taken",
  "DROVER-HOK-007": "webhook address not allowed",
  "DROVER-HOK-008": "unknown webhook",
  "DROVER-WEB-001": "sign-in link cannot be used",
  "DROVER-WEB-002": "dashboard not built",
  "DROVER-LLM-001": "unknown model provider",
  "DROVER-LLM-002": "provider's API key missing",
  "DROVER-LLM-003": "provider's base URL missing or invalid",
  "DROVER-LLM-004": "script of the scripted provider cannot be used",
  "DROVER-LLM-005": "no provider configured, and none detected",
  "DROVER-LLM-006": "provider's package not installed",
  "DROVER-BUG-001": "a defect in Drover",
} as const;

export type ErrorCode = keyof typeof errorCodes;
