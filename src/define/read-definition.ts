import { readFile, stat } from "node:fs/promises";
import type { DefinitionFault } from "../model/definition-fault.ts";
import { maxDefinitionBytes } from "./definition-limits.ts";
import { requireErrorCode } from "./error-code.ts";

type Content = { ok: true; text: string } | { ok: false; faults: DefinitionFault[]; gone: boolean };

/** Reads the text of a definition file, or reports why that is not possible. */
export async function readDefinition(file: string): Promise<Content> {
  const rejectFile = (message: string, next: string, line: number | null = null): Content => ({
    ok: false,
    faults: [{ ...createFault(file, message, next), line }],
    gone: false,
  });
  let bytes: Buffer;
  try {
    const { size, mode } = await stat(file);
    // Reading a named pipe would block forever.
    if ((mode & 0o170000) !== 0o100000) return rejectFile("is not a regular file", "Move it out of the directory.");
    if (size > maxDefinitionBytes) return createTooLargeResult(file);
    bytes = await readFile(file);
  } catch (error) {
    return { ok: false, faults: [createUnreadableFault(file, error)], gone: isMissing(error) };
  }
  try {
    return { ok: true, text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const [before] = bytes.toString("utf8").split("\uFFFD");
    return rejectFile("is not UTF-8 text", "Save it as UTF-8.", before!.split("\n").length);
  }
}

function createTooLargeResult(file: string): Content {
  const limit = createFault(file, `is larger than ${maxDefinitionBytes / 1024} KB`, "Make it smaller.");
  return { ok: false, faults: [{ ...limit, code: "DROVER-AGT-009" }], gone: false };
}

export function isMissing(error: unknown): boolean {
  return requireErrorCode(error) === "ENOENT";
}

export function createUnreadableFault(file: string, error: unknown): DefinitionFault {
  const next = isMissing(error) ? "Create it, or correct the path." : "Make it readable by this user.";
  return createFault(file, `cannot be read (${requireErrorCode(error)})`, next);
}

function createFault(file: string, message: string, next: string): DefinitionFault {
  return { code: "DROVER-AGT-001", file, line: null, path: "", message, next };
}
