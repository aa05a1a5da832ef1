import { createHmac, timingSafeEqual } from "node:crypto";

export interface AttemptTokens {
  sign(run_id: string, attempt: number): string;
  /** Only says that we made it: whether that attempt is still the current one is the run's to say. */
  read(token: string): { run_id: string; attempt: number } | null;
}

const shape = /^drva_([0-9a-zA-Z-]{1,64})\.([1-9][0-9]{0,6})\.([0-9a-f]{64})$/;

/** Nothing is stored for them: whoever has the key can make and check them. */
export function createAttemptTokens(key: Uint8Array): AttemptTokens {
  return {
    sign: (run_id, attempt) => `drva_${run_id}.${attempt}.${mac(key, run_id, attempt).toString("hex")}`,
    read(token) {
      const match = shape.exec(token);
      if (!match) return null;
      const [, run_id = "", attempt = "", given = ""] = match;
      const right = timingSafeEqual(Buffer.from(given, "hex"), mac(key, run_id, Number(attempt)));
      return right ? { run_id, attempt: Number(attempt) } : null;
    },
  };
}

/** The first words keep these apart from everything else the same key may sign. */
function mac(key: Uint8Array, run_id: string, attempt: number): Buffer {
  return createHmac("sha256", key).update(`drover attempt token 1\n${run_id}\n${attempt}`).digest();
}
