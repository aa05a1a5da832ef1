import type { Token, TokenReads } from "../model/token.ts";
import { hashToken, newTokenText } from "./token-text.ts";

/**
 * Tokens for what a coordinator starts itself. They are good at this coordinator alone, until its process ends, and stand
 * in no record: nothing of them is left where it is killed.
 */
export interface EphemeralTokens {
  /** Its text. */
  lend(token: Pick<Token, "token_id" | "role" | "subject" | "label" | "created_at">): string;
  /** One of these, else one of the record. */
  token: TokenReads["token"];
  token_hash: TokenReads["token_hash"];
}

export function createEphemeralTokens(read: Pick<TokenReads, "token" | "token_hash">): EphemeralTokens {
  const lent = new Map<string, Token>();
  return {
    lend(token) {
      const text = newTokenText("drv_");
      lent.set(hashToken(text), {
        ...token,
        kind: "access",
        created_by: "drover",
        expires_at: null,
        revoked_at: null,
        used_at: null,
      });
      return text;
    },
    token: async (hash) => lent.get(hash) ?? read.token(hash),
    async token_hash(beginning) {
      for (const hash of lent.keys()) if (hash.startsWith(beginning)) return hash;
      return read.token_hash(beginning);
    },
  };
}
