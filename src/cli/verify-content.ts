import { createHash } from "node:crypto";
import { HostError } from "../model/errors.ts";
import type { StoredFile } from "../model/file.ts";

/** Passes the bytes on, and throws at the end if their hash differs from the recorded one. */
export async function* verifyContent(
  content: AsyncIterable<Uint8Array>,
  { path, sha256 }: Pick<StoredFile, "path" | "sha256">,
): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  for await (const chunk of content) {
    hash.update(chunk);
    yield chunk;
  }
  if (hash.digest("hex") === sha256) return;
  throw new HostError({
    code: "DROVER-API-028",
    message: `The content received for ${path} does not match its recorded SHA-256.`,
    next: "Try again. If it fails again, the stored file is damaged: restore it from a backup.",
  });
}
