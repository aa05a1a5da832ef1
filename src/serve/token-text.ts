import { randomBytes } from "node:crypto";

export { hashToken } from "../wire/proof.ts";

/** The prefix tells people and secret scanners what kind of token it is. */
export type TokenPrefix = "drv_" | "drve_" | "drvl_" | "drvb_";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** 32 characters of base62: 190 bits. */
export function newTokenText(prefix: TokenPrefix): string {
  let text = "";
  while (text.length < 32) text += toBase62(randomBytes(48));
  return prefix + text.slice(0, 32);
}

/** Skips bytes from 248, the largest multiple of 62 in a byte, because they would favor some characters. */
export function toBase62(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) if (byte < 248) text += alphabet[byte % 62];
  return text;
}
