/**
 * A coordinator proves that it knows the caller's token before the caller sends it. Both sides have the token's hash: the
 * caller sends a nonce and receives `computeProof(hash, nonce, origin)`. See docs/decisions/0030-proof-before-secrets.md.
 */
export interface ProofRequest {
  nonce: string;
  key_id: string;
  origin: string;
}

export const noncePattern = /^[0-9a-f]{64}$/;
/** A prefix of a token's hash, or the run and attempt of an attempt token. */
export const keyIdPattern = /^(?:[0-9a-f]{16}|drva_[0-9a-zA-Z-]{1,64}\.[1-9][0-9]{0,6})$/;
