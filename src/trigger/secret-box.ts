import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { HostError } from "../model/errors.ts";

/** Encrypts signing secrets at rest. Each is bound to its `owner`, so it cannot be moved to another row. */
export interface SecretBox {
  seal(owner: string, secret: string): string;
  open(owner: string, sealed: string): string;
}

/** `key` is the key that seals the record's audit chain. */
export function createSecretBox(key: Uint8Array, purpose = "drover webhook secrets"): SecretBox {
  const derivedKey = Buffer.from(hkdfSync("sha256", key, "", purpose, 32));
  return {
    seal(owner, secret) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", derivedKey, nonce).setAAD(Buffer.from(owner));
      const text = Buffer.concat([cipher.update(secret, "utf8"), cipher.final()]);
      return `v1.${Buffer.concat([nonce, cipher.getAuthTag(), text]).toString("base64url")}`;
    },
    open(owner, sealed) {
      try {
        const bytes = Buffer.from(sealed.replace(/^v1\./, ""), "base64url");
        const decipher = createDecipheriv("aes-256-gcm", derivedKey, bytes.subarray(0, 12))
          .setAAD(Buffer.from(owner))
          .setAuthTag(bytes.subarray(12, 28));
        return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString("utf8");
      } catch (error) {
        throw new HostError({
          code: "DROVER-AUD-001",
          message: `The secret of the ${owner} cannot be decrypted with the key of this record.`,
          next: "Start Drover with the key that the record was created with, or rotate the secret.",
          cause: error,
        });
      }
    },
  };
}

export function createSecret(): string {
  return `whsec_${randomBytes(32).toString("base64url")}`;
}
