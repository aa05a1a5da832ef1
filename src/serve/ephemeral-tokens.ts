import type { Token, TokenReads } from "../model/token.ts";
import { hashToken, newTokenText } from "./token-text.ts";

/**
 * Tokens for processes that the coordinator itself starts. They are valid only at this coordinator and only while it runs.
 * These tokens exist only in memory, so a killed coordinator leaves none behind.
 */
export interface EphemeralTokens {
  /** Returns the token's text. */
  issue(token: Pick<Token, "token_id" | "role" | "subject" | "label" | "created_at">): string;
  /** Searches these tokens first, then the record. */
  token: TokenReads["token"];
  token_hash: TokenReads["token_hash"];
}

export function createEphemeralTokens(read: Pick<TokenReads, "token" | "token_hash">): EphemeralTokens {
  const issued = new Map<string, Token>();
  return {
    issue(token) {
      const text = newTokenText("drv_");
      issued.set(hashToken(text), {
        ...token,
        kind: "access",
        created_by: "drover",
        expires_at: null,
        revoked_at: null,
        used_at: null,
      });
      return text;
    },
    token: async (hash) => issued.get(hash) ?? read.token(hash),
    async token_hash(prefix) {
      for (const hash of issued.keys()) if (hash.startsWith(prefix)) return hash;
      return read.token_hash(prefix);
    },
  };
}
