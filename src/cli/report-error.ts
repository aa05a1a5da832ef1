import { withDroverCommand } from "./drover-command.ts";
import { isClosedPipe, write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";

interface PrintableError {
  code: string;
  message: string;
  next?: string | undefined;
  field?: string | undefined;
}

/** Prints an error for a person, or as JSON with --json, and returns the exit code. Never throws. */
export function reportError(error: unknown, json: boolean): number {
  // The reader has closed the pipe, as in `drover runs list | head -1`.
  if (isClosedPipe(error)) return 141;
  const printable = toPrintable(error);
  const detailLines = [
    ...listParameterFaults(error, printable.code),
    ...(printable.next ? [withDroverCommand(printable.next)] : []),
  ];
  const text = `drover: ${printable.message} [${printable.code}]\n${detailLines.map((line) => `  ${line}\n`).join("")}`;
  const isPrinted = json && printable.code !== "DROVER-OUT-001" && tryWrite(1, toJsonLine({ error: printable }));
  if (!isPrinted) tryWrite(2, text);
  return toExitCode(printable.code);
}

/** Returns false if the write failed. There is nowhere else to report that, so only the exit code shows it. */
function tryWrite(fd: 1 | 2, text: string): boolean {
  try {
    write(fd, text);
    return true;
  } catch (error) {
    if (error instanceof Error) return false;
    throw error;
  }
}

/** Returns 2 for invalid usage, 1 for a request that does not fit the current state, 125 if Drover itself could not do its work. */
function toExitCode(code: string): number {
  if (wrongStateCodes.test(code)) return 1;
  return wrongUsageCodes.test(code) ? 2 : 125;
}

/** The request does not fit the current state: for example, a run is not parked or a question is already answered. */
const wrongStateCodes = /^DROVER-API-03[0-2]/;

/**
 * Mistakes on the command line: bad options or parameters, or an unknown agent, session, id, profile or provider. The
 * coordinator reports some of them.
 */
const wrongUsageCodes = /^DROVER-(?:USE-|SCH-|SUB-|PAR-|AGT-|LLM-|HOK-|PRF-001|API-006|API-014|API-021)/;

/** Returns one line for each invalid parameter, from the coordinator's problem response. */
function listParameterFaults(error: unknown, code: string): string[] {
  const cause: unknown = error instanceof Error && code.startsWith("DROVER-PAR-") ? error.cause : null;
  const faults: unknown = typeof cause === "object" && cause !== null ? Reflect.get(cause, "faults") : null;
  if (!Array.isArray(faults)) return [];
  // The client parsed the problem, so the faults have this shape.
  return (faults as { path: string; message: string }[]).map(
    ({ path, message }) => `${path.replace(/^body\./, "")}: ${message}`,
  );
}

function toPrintable(error: unknown): PrintableError {
  // Checks fields instead of the class: each bundle has its own copy of the error classes.
  if (error instanceof Error && "code" in error && typeof error.code === "string" && error.code.startsWith("DROVER-")) {
    const { code, message, next, field } = error as Error & PrintableError;
    if (code === "DROVER-BUG-001") return bugError(message);
    return { code, message, ...(next ? { next } : {}), ...(field ? { field } : {}) };
  }
  return bugError(
    error instanceof Error ? error.message : String(error),
    error instanceof Error ? error.stack : undefined,
  );
}

function bugError(message: string, stack?: string): PrintableError {
  if (process.env["DROVER_DEBUG"] && stack) tryWrite(2, `${stack}\n`);
  return {
    code: "DROVER-BUG-001",
    message: `This is a bug in Drover: ${message}`,
    next: "Run the command again with DROVER_DEBUG=1 and report the message with its stack trace.",
  };
}
