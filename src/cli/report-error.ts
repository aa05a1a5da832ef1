import { isClosedPipe, write } from "./io.ts";
import { jsonLine } from "./json-line.ts";

interface Shown {
  code: string;
  message: string;
  next?: string | undefined;
  field?: string | undefined;
}

/** Prints what went wrong for a person (or, with --json, for a program) and gives the exit code. Never throws. */
export function reportError(error: unknown, json: boolean): number {
  // the reader went away, as in `drover runs list | head -1`: nobody is left to tell
  if (isClosedPipe(error)) return 141;
  const shown = toShown(error);
  const more = [...parameterFaults(error, shown.code), ...(shown.next ? [shown.next] : [])];
  const forPeople = `drover: ${shown.message} [${shown.code}]\n${more.map((line) => `  ${line}\n`).join("")}`;
  const told = json && shown.code !== "DROVER-OUT-001" && tryWrite(1, jsonLine({ error: shown }));
  if (!told) tryWrite(2, forPeople);
  return exitCodeOf(shown.code);
}

/** false where it cannot be written. Behind stderr there is no further place to say so: the exit code has to. */
function tryWrite(fd: 1 | 2, text: string): boolean {
  try {
    write(fd, text);
    return true;
  } catch (error) {
    if (error instanceof Error) return false;
    throw error;
  }
}

/** Wrong usage is 2; what cannot be done any more, or not yet, is 1; whatever keeps Drover itself from its work is 125. */
function exitCodeOf(code: string): number {
  if (wrongState.test(code)) return 1;
  return wrongUsage.test(code) ? 2 : 125;
}

/** A run that is not parked, or a question that somebody else has answered. */
const wrongState = /^DROVER-API-03[0-2]/;

/**
 * Words that cannot be meant so: options, the agent, session, id, profile or provider that is named, and parameters. The
 * coordinator finds some of them, in a request that was made of the same words.
 */
const wrongUsage = /^DROVER-(?:USE-|SCH-|SUB-|PAR-|AGT-|LLM-|HOK-|PRF-001|API-006|API-014|API-021)/;

/** Which parameters do not fit, and why: the refusal has it beside its message. */
function parameterFaults(error: unknown, code: string): string[] {
  const cause: unknown = error instanceof Error && code.startsWith("DROVER-PAR-") ? error.cause : null;
  const faults: unknown = typeof cause === "object" && cause !== null ? Reflect.get(cause, "faults") : null;
  if (!Array.isArray(faults)) return [];
  // of a problem that was read from an answer, hence of this shape
  return (faults as { path: string; message: string }[]).map(
    ({ path, message }) => `${path.replace(/^body\./, "")}: ${message}`,
  );
}

function toShown(error: unknown): Shown {
  // by its fields, not by class: each bundle has its own copy of the classes
  if (error instanceof Error && "code" in error && typeof error.code === "string" && error.code.startsWith("DROVER-")) {
    const { code, message, next, field } = error as Error & Shown;
    if (code === "DROVER-BUG-001") return bug(message);
    return { code, message, ...(next ? { next } : {}), ...(field ? { field } : {}) };
  }
  return bug(error instanceof Error ? error.message : String(error), error instanceof Error ? error.stack : undefined);
}

function bug(message: string, stack?: string): Shown {
  if (process.env["DROVER_DEBUG"] && stack) tryWrite(2, `${stack}\n`);
  return {
    code: "DROVER-BUG-001",
    message: `This is a defect in Drover: ${message}`,
    next: "Run it again with DROVER_DEBUG=1 to see where it happened, and report both.",
  };
}
