import { createHmac } from "node:crypto";
import type { Store } from "../model/store.ts";
import { createAdminToken } from "./token-file.ts";
import { hashToken, toBase62 } from "./token-text.ts";

/**
 * Every coordinator of a fleet derives the same admin token from their shared secret, so it is stored nowhere. If it is
 * revoked, the next one in the sequence takes its place.
 */
export async function ensureFleetAdminToken(
  secret: Uint8Array,
  store: Pick<Store, "apply" | "read"> & { restoredAt(): Promise<string | null> },
  now: () => Date,
  newId: () => string,
): Promise<string> {
  const restoredAt = await store.restoredAt();
  for (let number = 1; ; number += 1) {
    const text = deriveToken(secret, number, restoredAt);
    const hash = hashToken(text);
    const stored = await store.read.token(hash);
    // A rotated token is still valid for its overlap, but will not be for long.
    if (stored !== null && stored.revoked_at !== null) continue;
    // If another coordinator stores it at the same moment, this has no effect.
    if (stored === null)
      await store.apply([
        {
          op: "put_token",
          hash,
          token: createAdminToken(newId(), now(), "admin token of the coordinators, derived from their secret"),
        },
      ]);
    return text;
  }
}

/**
 * Derives one token of the sequence: 32 characters, 190 bits. The first line separates this from other uses of the secret. A
 * restored record does not know which tokens were revoked after its backup, so a restore starts a new sequence.
 */
function deriveToken(secret: Uint8Array, number: number, restoredAt: string | null): string {
  const suffix = restoredAt === null ? "" : `\n${restoredAt}`;
  const digest = createHmac("sha512", secret).update(`drover admin token 1\n${number}${suffix}`).digest();
  // On average 62 of the 64 bytes yield a character.
  return `drv_${toBase62(digest).slice(0, 32)}`;
}
