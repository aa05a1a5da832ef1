import { createHmac, timingSafeEqual } from "node:crypto";

/** How far the time of a signature may be from ours, either way. */
export const toleranceMs = 5 * 60 * 1000;

/** `key`: what a repeated delivery is told by. */
export type Verified = { ok: true; key: string } | { ok: false; why: "wrong" | "old" };

/** The value of `Drover-Signature`. */
export function signatureOf(secret: string, body: Uint8Array, now: Date): string {
  const seconds = String(Math.floor(now.getTime() / 1000));
  return `t=${seconds},v1=${timed(secret, seconds, body).toString("hex")}`;
}

/** Whether it is too old is said only of one that is right. */
export function verifyTimestamped(header: string | undefined, secret: string, body: Uint8Array, now: Date): Verified {
  const [, seconds, given] = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/i.exec(header ?? "") ?? [];
  const right = timed(secret, seconds ?? "0", body);
  if (!isSame(right, given) || seconds === undefined) return { ok: false, why: "wrong" };
  if (Math.abs(now.getTime() - Number(seconds) * 1000) > toleranceMs) return { ok: false, why: "old" };
  return { ok: true, key: right.toString("hex") };
}

/** GitHub's `X-Hub-Signature-256`: over the body alone, so it is never too old. */
export function verifyGithub(header: string | undefined, secret: string, body: Uint8Array): Verified {
  const [, given] = /^sha256=([0-9a-f]{64})$/i.exec(header ?? "") ?? [];
  const right = createHmac("sha256", secret).update(body).digest();
  return isSame(right, given) ? { ok: true, key: right.toString("hex") } : { ok: false, why: "wrong" };
}

function timed(secret: string, seconds: string, body: Uint8Array): Buffer {
  return createHmac("sha256", secret).update(`${seconds}.`).update(body).digest();
}

/** Takes the same time for every signature of the right length; what has another form says nothing about the secret. */
function isSame(right: Buffer, given: string | undefined): boolean {
  return given !== undefined && timingSafeEqual(right, Buffer.from(given, "hex"));
}
