import { createHmac, hash } from "node:crypto";

const attemptToken = /^(drva_[0-9a-zA-Z-]{1,64}\.[1-9][0-9]{0,6})\.[0-9a-f]{64}$/;

/**
 * Identifies a token without revealing it. The id is the first 64 bits of the hash, which leaves 192 bits to guess, and
 * the record can look it up without another index.
 */
export function toKeyId(token: string): string {
  return attemptToken.exec(token)?.[1] ?? hashToken(token).slice(0, 16);
}

/** The hash under which the record stores a token. */
export function hashToken(text: string): string {
  return hash("sha256", text);
}

export function computeProof(tokenHash: string, nonce: string, origin: string): Buffer {
  return createHmac("sha256", Buffer.from(tokenHash, "hex")).update(`drover proof 1\n${nonce}\n${origin}`).digest();
}

/**
 * Formats the address of the coordinator's end of a connection. Both sides see the same origin unless a proxy is
 * between them.
 */
export function formatOrigin(address: string | undefined, port: number | undefined): string | null {
  if (address === undefined || port === undefined) return null;
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, "");
  return `http://${plain.includes(":") ? `[${plain}]` : plain}:${port}`;
}

export function isLoopbackOrigin(origin: string): boolean {
  return /^http:\/\/(?:127\.\d+\.\d+\.\d+|\[::1\]):\d+$/.test(origin);
}
