import { createHash } from "node:crypto";
import { HostError } from "../model/errors.ts";
import type { StoredFile } from "../model/file.ts";

/** The same bytes; ends with an error where they are not the ones on the record. */
export async function* verifyContent(
  content: AsyncIterable<Uint8Array>,
  { path, sha256 }: StoredFile,
): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  for await (const chunk of content) {
    hash.update(chunk);
    yield chunk;
  }
  if (hash.digest("hex") === sha256) return;
  throw new HostError({
    code: "DROVER-API-028",
    message: `What came of ${path} is not what the record says: its SHA-256 differs.`,
    next: "Try again. If it stays so, the stored file is damaged; a backup has it whole.",
  });
}
