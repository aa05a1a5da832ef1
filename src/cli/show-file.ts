import { isUtf8 } from "node:buffer";
import type { StoredFile } from "../model/file.ts";
import { verifyContent } from "./verify-content.ts";
import { isTerminal, write } from "./io.ts";
import { usageError } from "./options.ts";
import { quoteForShell } from "./shell-quote.ts";
import { findDroverCommand } from "./drover-command.ts";

/** Writes a file to stdout unchanged. A terminal only gets sanitized text, unless `force` is set. */
export async function showFile(
  content: AsyncIterable<Uint8Array>,
  file: StoredFile,
  { force, run_id }: { force: boolean; run_id: string },
): Promise<void> {
  const writesBytes = force || !isTerminal(1);
  const decoder = new TextDecoder();
  for await (const chunk of verifyContent(content, file)) {
    if (writesBytes) write(1, chunk);
    else if (looksBinary(chunk)) throw binaryFile(file, run_id);
    else write(1, decoder.decode(chunk, { stream: true }));
  }
}

/** Reads the content for JSON output: as text, or as base64 if it is not UTF-8. */
export async function readWholeFile(
  content: AsyncIterable<Uint8Array>,
  file: StoredFile,
): Promise<{ text: string } | { base64: string }> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of verifyContent(content, file)) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  return isUtf8(bytes) ? { text: bytes.toString("utf8") } : { base64: bytes.toString("base64") };
}

/** Whether a chunk has a NUL byte or is not valid UTF-8. Characters that are split at its ends do not count. */
function looksBinary(chunk: Uint8Array): boolean {
  if (chunk.includes(0)) return true;
  const candidates = [0, 1, 2, 3].flatMap((from) => [0, 1, 2, 3].map((to) => chunk.subarray(from, chunk.length - to)));
  return !candidates.some((part) => isUtf8(part));
}

function binaryFile({ path, media_type }: StoredFile, run_id: string) {
  return usageError(
    `${path} (${media_type}) is binary, and stdout is a terminal. Save it with ${findDroverCommand()} runs files ${run_id} ${quoteForShell(path)} -o FILE, or print it with --force.`,
    "runs files",
    "PATH",
  );
}
