import { isUtf8 } from "node:buffer";
import type { StoredFile } from "../model/file.ts";
import { verifyContent } from "./verify-content.ts";
import { isTerminal, write } from "./io.ts";
import { usage } from "./options.ts";
import { shellQuote } from "./shell-quote.ts";

/** To stdout, byte by byte. A terminal gets text only, without what would redraw it, unless forced. */
export async function showFile(
  content: AsyncIterable<Uint8Array>,
  file: StoredFile,
  { force, run_id }: { force: boolean; run_id: string },
): Promise<void> {
  const asItIs = force || !isTerminal(1);
  const decoder = new TextDecoder();
  for await (const chunk of verifyContent(content, file)) {
    if (asItIs) write(1, chunk);
    else if (looksBinary(chunk)) throw binary(file, run_id);
    else write(1, decoder.decode(chunk, { stream: true }));
  }
}

/** For JSON: as output is told in events, as text or as base64. */
export async function wholeFile(
  content: AsyncIterable<Uint8Array>,
  file: StoredFile,
): Promise<{ text: string } | { base64: string }> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of verifyContent(content, file)) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  return isUtf8(bytes) ? { text: bytes.toString("utf8") } : { base64: bytes.toString("base64") };
}

/** No text has a NUL, and text is UTF-8 but for a character that the end of a chunk cuts. */
function looksBinary(chunk: Uint8Array): boolean {
  if (chunk.includes(0)) return true;
  const inner = [0, 1, 2, 3].flatMap((from) => [0, 1, 2, 3].map((to) => chunk.subarray(from, chunk.length - to)));
  return !inner.some((part) => isUtf8(part));
}

function binary({ path, media_type }: StoredFile, run_id: string) {
  return usage(
    `${path} (${media_type}) is not text, and stdout is a terminal. Save it: drover runs files ${run_id} ${shellQuote(path)} -o FILE. Or give --force.`,
    "runs files",
    "PATH",
  );
}
