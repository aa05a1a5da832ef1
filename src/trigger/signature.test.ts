import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { createSecretBox, createSecret } from "./secret-box.ts";
import { createSignature, signatureToleranceMs, verifyGithub, verifyTimestamped } from "./signature.ts";

const secret = "whsec_0123456789abcdef";
const body = Buffer.from('{"text":"grüße"}');
const now = new Date("2026-03-01T12:00:00.500Z");

/** Signs with an independent implementation, for comparison. */
function signWithOpenssl(key: string, input: Uint8Array): string {
  const printed = execFileSync("openssl", ["dgst", "-sha256", "-hmac", key], { input, encoding: "utf8" });
  return printed.trim().split(" ").at(-1)!;
}

test("signs as openssl does, with the time in seconds", () => {
  const seconds = "1772366400";
  const expected = signWithOpenssl(secret, Buffer.concat([Buffer.from(`${seconds}.`), body]));
  expect(createSignature(secret, body, now)).toBe(`t=${seconds},v1=${expected}`);
});

test("accepts signatures of openssl in both schemes, and recognizes replays by the signature", () => {
  const seconds = String(Math.floor(now.getTime() / 1000));
  const timedSignature = signWithOpenssl(secret, Buffer.concat([Buffer.from(`${seconds}.`), body]));
  expect(verifyTimestamped(`t=${seconds},v1=${timedSignature}`, secret, body, now)).toEqual({
    ok: true,
    key: timedSignature,
  });
  // A signature in upper case belongs to the same delivery.
  expect(verifyTimestamped(`t=${seconds},v1=${timedSignature.toUpperCase()}`, secret, body, now)).toEqual({
    ok: true,
    key: timedSignature,
  });
  const github = signWithOpenssl(secret, body);
  expect(verifyGithub(`sha256=${github}`, secret, body)).toEqual({ ok: true, key: github });
});

test.each([
  undefined,
  "",
  "t=1772366400",
  "v1=00",
  `t=1772366400,v1=${"0".repeat(64)}`,
  `t=1772366400,v1=${"g".repeat(64)}`,
  `t=1772366400,v1=${"0".repeat(63)}`,
  `t=-1,v1=${"0".repeat(64)}`,
  `t=1e9,v1=${"0".repeat(64)}`,
  `sha256=${"0".repeat(64)}`,
])("refuses %j as wrong, whatever its time", (header) => {
  expect(verifyTimestamped(header, secret, body, now)).toEqual({ ok: false, reason: "wrong" });
  expect(verifyGithub(header, secret, body)).toEqual({ ok: false, reason: "wrong" });
});

test("refuses a valid signature for another secret, body or time", () => {
  const header = createSignature(secret, body, now);
  expect(verifyTimestamped(header, `${secret}x`, body, now)).toMatchObject({ reason: "wrong" });
  expect(verifyTimestamped(header, secret, Buffer.from("{}"), now)).toMatchObject({ reason: "wrong" });
  expect(verifyTimestamped(header.replace("t=17", "t=18"), secret, body, now)).toMatchObject({ reason: "wrong" });
});

test("tolerates five minutes in either direction, and no more", () => {
  const exact = new Date("2026-03-01T12:00:00.000Z");
  const header = createSignature(secret, body, exact);
  for (const offsetMs of [signatureToleranceMs, -signatureToleranceMs])
    expect(verifyTimestamped(header, secret, body, new Date(exact.getTime() + offsetMs))).toMatchObject({ ok: true });
  for (const offsetMs of [signatureToleranceMs + 1, -signatureToleranceMs - 1])
    expect(verifyTimestamped(header, secret, body, new Date(exact.getTime() + offsetMs))).toEqual({
      ok: false,
      reason: "old",
    });
});

test("seals a secret differently each time, readable only with its own key and name", () => {
  const box = createSecretBox(randomBytes(32));
  const plainSecret = createSecret();
  const sealed = box.seal("hook a", plainSecret);
  expect(box.open("hook a", sealed)).toBe(plainSecret);
  expect(sealed).not.toContain(plainSecret.slice(6));
  expect(box.seal("hook a", plainSecret)).not.toBe(sealed);
  expect(() => box.open("hook b", sealed)).toThrow(/cannot be decrypted/);
  expect(() => createSecretBox(randomBytes(32)).open("hook a", sealed)).toThrow(/cannot be decrypted/);
  expect(() => box.open("hook a", "v1.AAAA")).toThrow(/cannot be decrypted/);
});
