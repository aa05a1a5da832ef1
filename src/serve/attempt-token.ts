import { createHmac, timingSafeEqual } from "node:crypto";

export interface AttemptTokens {
  sign(run_id: string, attempt: number): string;
  /** Only says that we made it: whether that attempt is still the current one is the run's to say. */
  read(token: string): { run_id: string; attempt: number } | null;
}

const shape = /^drva_([0-9a-zA-Z-]{1,64})\.([1-9][0-9]{0,6})\.([0-9a-f]{64})$/;

/**
 * Nothing is stored for them: the key makes and checks them. A record that was restored, with its tokens revoked, has the key
 * of its backup, and runs that may have ended since: `restoredAt` makes other tokens of the same attempts.
 */
export function createAttemptTokens(key: Uint8Array, restoredAt: string | null): AttemptTokens {
  const mac = (run_id: string, attempt: number): Buffer => macOf(key, run_id, attempt, restoredAt);
  return {
    sign: (run_id, attempt) => `drva_${run_id}.${attempt}.${mac(run_id, attempt).toString("hex")}`,
    read(token) {
      const match = shape.exec(token);
      if (!match) return null;
      const [, run_id = "", attempt = "", given = ""] = match;
      const right = timingSafeEqual(Buffer.from(given, "hex"), mac(run_id, Number(attempt)));
      return right ? { run_id, attempt: Number(attempt) } : null;
    },
  };
}

/** The first words keep these apart from everything else the same key may sign. */
function macOf(key: Uint8Array, run_id: string, attempt: number, restoredAt: string | null): Buffer {
  const since = restoredAt === null ? "" : `\n${restoredAt}`;
  return createHmac("sha256", key).update(`drover attempt token 1\n${run_id}\n${attempt}${since}`).digest();
}
