import { createHmac, timingSafeEqual } from "node:crypto";

/** How far a signature's timestamp may differ from this process's clock, in either direction. */
export const signatureToleranceMs = 5 * 60 * 1000;

/** `key` identifies the delivery, so that a replay is recognized. */
export type VerifyResult = { ok: true; key: string } | { ok: false; reason: "wrong" | "old" };

/** Creates the value of `Drover-Signature`. */
export function createSignature(secret: string, body: Uint8Array, now: Date): string {
  const seconds = String(Math.floor(now.getTime() / 1000));
  return `t=${seconds},v1=${signWithTime(secret, seconds, body).toString("hex")}`;
}

/** Verifies a `Drover-Signature`. Reports `old` only if the signature itself is valid. */
export function verifyTimestamped(
  header: string | undefined,
  secret: string,
  body: Uint8Array,
  now: Date,
): VerifyResult {
  const [, seconds, digest] = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/i.exec(header ?? "") ?? [];
  const expected = signWithTime(secret, seconds ?? "0", body);
  if (!isEqual(expected, digest) || seconds === undefined) return { ok: false, reason: "wrong" };
  if (Math.abs(now.getTime() - Number(seconds) * 1000) > signatureToleranceMs) return { ok: false, reason: "old" };
  return { ok: true, key: expected.toString("hex") };
}

/** Verifies GitHub's `X-Hub-Signature-256`. It covers only the body, so it never expires. */
export function verifyGithub(header: string | undefined, secret: string, body: Uint8Array): VerifyResult {
  const [, digest] = /^sha256=([0-9a-f]{64})$/i.exec(header ?? "") ?? [];
  const expected = createHmac("sha256", secret).update(body).digest();
  return isEqual(expected, digest) ? { ok: true, key: expected.toString("hex") } : { ok: false, reason: "wrong" };
}

function signWithTime(secret: string, seconds: string, body: Uint8Array): Buffer {
  return createHmac("sha256", secret).update(`${seconds}.`).update(body).digest();
}

/** Compares in constant time. A signature of the wrong form was rejected earlier, which reveals nothing about the secret. */
function isEqual(expected: Buffer, digest: string | undefined): boolean {
  return digest !== undefined && timingSafeEqual(expected, Buffer.from(digest, "hex"));
}
