import { hash, randomBytes } from "node:crypto";

/** What begins a token says what it is, to people and to secret scanners. */
export type TokenPrefix = "drv_" | "drve_" | "drvl_" | "drvb_";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** 32 characters of base62: 190 bits. */
export function newTokenText(prefix: TokenPrefix): string {
  let text = "";
  while (text.length < 32) text += lettersOf(randomBytes(48));
  return prefix + text.slice(0, 32);
}

/** 248 is the largest multiple of 62 in a byte: taking the others too would favour some characters. */
export function lettersOf(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) if (byte < 248) text += alphabet[byte % 62];
  return text;
}

export function hashToken(text: string): string {
  return hash("sha256", text);
}
