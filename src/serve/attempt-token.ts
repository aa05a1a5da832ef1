import { createHmac, timingSafeEqual } from "node:crypto";

export interface AttemptTokens {
  sign(run_id: string, attempt: number): string;
  /** Verifies the signature only. The caller must check that this is still the run's current attempt. */
  verify(token: string): { run_id: string; attempt: number } | null;
}

const tokenPattern = /^drva_([0-9a-zA-Z-]{1,64})\.([1-9][0-9]{0,6})\.([0-9a-f]{64})$/;

/**
 * Attempt tokens are signed, not stored. A restored record has the key of its backup, so tokens issued since then would
 * still verify: mixing in `restoredAt` invalidates them.
 */
export function createAttemptTokens(key: Uint8Array, restoredAt: string | null): AttemptTokens {
  const mac = (run_id: string, attempt: number): Buffer => computeMac(key, run_id, attempt, restoredAt);
  return {
    sign: (run_id, attempt) => `drva_${run_id}.${attempt}.${mac(run_id, attempt).toString("hex")}`,
    verify(token) {
      const match = tokenPattern.exec(token);
      if (!match) return null;
      const [, run_id = "", attempt = "", signature = ""] = match;
      const isValid = timingSafeEqual(Buffer.from(signature, "hex"), mac(run_id, Number(attempt)));
      return isValid ? { run_id, attempt: Number(attempt) } : null;
    },
  };
}

/** The first line of the message separates this from other uses of the same key. */
function computeMac(key: Uint8Array, run_id: string, attempt: number, restoredAt: string | null): Buffer {
  const suffix = restoredAt === null ? "" : `\n${restoredAt}`;
  return createHmac("sha256", key).update(`drover attempt token 1\n${run_id}\n${attempt}${suffix}`).digest();
}
