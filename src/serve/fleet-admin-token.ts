import { createHmac } from "node:crypto";
import type { Store } from "../model/store.ts";
import { adminToken } from "./token-file.ts";
import { hashToken, toBase62 } from "./token-text.ts";

/**
 * The admin token that every coordinator of a fleet has without keeping it anywhere: it follows from the secret they
 * share. Once it is revoked, the next one that follows.
 */
export async function fleetAdminToken(
  secret: Uint8Array,
  store: Pick<Store, "apply" | "read"> & { restoredAt(): Promise<string | null> },
  now: () => Date,
  newId: () => string,
): Promise<string> {
  const restored = await store.restoredAt();
  for (let no = 1; ; no += 1) {
    const text = followingToken(secret, no, restored);
    const hash = hashToken(text);
    const known = await store.read.token(hash);
    // one that was replaced is good for a while yet, but not for long
    if (known !== null && known.revoked_at !== null) continue;
    // Another coordinator that starts at the same moment may have put it: then it is there.
    if (known === null)
      await store.apply([
        {
          op: "put_token",
          hash,
          token: adminToken(newId(), now(), "admin token of the coordinators, from their secret"),
        },
      ]);
    return text;
  }
}

/**
 * Of the same shape as any other; 32 letters have 190 bits. The first words keep it apart from what else is signed. A restored
 * record does not know which of them were revoked after its backup was made: from then on others follow.
 */
function followingToken(secret: Uint8Array, no: number, restored: string | null): string {
  const since = restored === null ? "" : `\n${restored}`;
  const digest = createHmac("sha512", secret).update(`drover admin token 1\n${no}${since}`).digest();
  // of 64 bytes some 62 give a letter
  return `drv_${toBase62(digest).slice(0, 32)}`;
}
