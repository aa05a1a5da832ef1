import { createHmac, hash } from "node:crypto";

const attemptToken = /^(drva_[0-9a-zA-Z-]{1,64}\.[1-9][0-9]{0,6})\.[0-9a-f]{64}$/;

/**
 * Names a token to those who know it. The first 64 bits of its hash leave 192 that a stranger would have to guess; and
 * the record finds a token by them without another index.
 */
export function keyIdOf(token: string): string {
  return attemptToken.exec(token)?.[1] ?? hashToken(token).slice(0, 16);
}

/** As the record stores it. */
export function hashToken(text: string): string {
  return hash("sha256", text);
}

export function proofOf(tokenHash: string, nonce: string, origin: string): Buffer {
  return createHmac("sha256", Buffer.from(tokenHash, "hex")).update(`drover proof 1\n${nonce}\n${origin}`).digest();
}

/** The end of a connection that a coordinator has: both sides see the same one, unless something stands between them. */
export function originOf(address: string | undefined, port: number | undefined): string | null {
  if (address === undefined || port === undefined) return null;
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, "");
  return `http://${plain.includes(":") ? `[${plain}]` : plain}:${port}`;
}

export function isLoopbackOrigin(origin: string): boolean {
  return /^http:\/\/(?:127\.\d+\.\d+\.\d+|\[::1\]):\d+$/.test(origin);
}
