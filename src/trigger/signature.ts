import { createHmac, timingSafeEqual } from "node:crypto";

/** How far a signature's timestamp may differ from our clock, in either direction. */
export const toleranceMs = 5 * 60 * 1000;

/** `key` identifies the delivery, so that a replay is recognized. */
export type Verified = { ok: true; key: string } | { ok: false; why: "wrong" | "old" };

/** The value of `Drover-Signature`. */
export function signatureOf(secret: string, body: Uint8Array, now: Date): string {
  const seconds = String(Math.floor(now.getTime() / 1000));
  return `t=${seconds},v1=${hmacWithTime(secret, seconds, body).toString("hex")}`;
}

/** Verifies a `Drover-Signature`. Reports `old` only if the signature itself is right. */
export function verifyTimestamped(header: string | undefined, secret: string, body: Uint8Array, now: Date): Verified {
  const [, seconds, given] = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/i.exec(header ?? "") ?? [];
  const right = hmacWithTime(secret, seconds ?? "0", body);
  if (!isSame(right, given) || seconds === undefined) return { ok: false, why: "wrong" };
  if (Math.abs(now.getTime() - Number(seconds) * 1000) > toleranceMs) return { ok: false, why: "old" };
  return { ok: true, key: right.toString("hex") };
}

/** Verifies GitHub's `X-Hub-Signature-256`. It covers only the body, so it never expires. */
export function verifyGithub(header: string | undefined, secret: string, body: Uint8Array): Verified {
  const [, given] = /^sha256=([0-9a-f]{64})$/i.exec(header ?? "") ?? [];
  const right = createHmac("sha256", secret).update(body).digest();
  return isSame(right, given) ? { ok: true, key: right.toString("hex") } : { ok: false, why: "wrong" };
}

function hmacWithTime(secret: string, seconds: string, body: Uint8Array): Buffer {
  return createHmac("sha256", secret).update(`${seconds}.`).update(body).digest();
}

/** Compares in constant time. A signature of the wrong form was rejected earlier, which reveals nothing about the secret. */
function isSame(right: Buffer, given: string | undefined): boolean {
  return given !== undefined && timingSafeEqual(right, Buffer.from(given, "hex"));
}
