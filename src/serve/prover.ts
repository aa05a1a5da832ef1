import type { TokenReads } from "../model/token.ts";
import { hashToken, isLoopbackOrigin, originOf, proofOf } from "../wire/proof.ts";
import type { ProofRequest } from "../wire/proof-request.ts";
import type { AttemptTokens } from "./attempt-token.ts";

export type Prove = (request: ProofRequest, arrivedAt: string | null) => Promise<string | null>;

interface ProverDeps {
  read: Pick<TokenReads, "token_hash">;
  attemptTokens: Pick<AttemptTokens, "sign">;
  publicUrls: readonly string[];
  /** Origins of the Unix sockets that this coordinator listens on. */
  sockets: ReadonlySet<string>;
}

/** After so long without an answer of the record, a token that was proved before is proved from memory. */
const patienceMs = 2000;
const maxRemembered = 1000;

/**
 * Proves to callers that this coordinator knows their token. It speaks only for the address that the connection came to,
 * for its sockets and for `public_urls`: a stranger who passes a request on from a port of his own gets nothing that he could answer
 * with. A token that is not known gets an answer of the same shape, and always the same one for the same question, so
 * that nobody learns which are.
 */
export function createProver({ read, attemptTokens, publicUrls, sockets }: ProverDeps): Prove {
  const publicOrigins = new Set(publicUrls.flatMap(loopbackOrigins));
  const remembered = new Map<string, string>();
  return async ({ nonce, key_id, origin }, arrivedAt) => {
    const isAddress = isLoopbackOrigin(origin) && (origin === arrivedAt || publicOrigins.has(origin));
    if (!isAddress && !sockets.has(origin)) return null;
    const hash = (await hashFor(key_id)) ?? strangersKey(key_id);
    return proofOf(hash, nonce, origin).toString("hex");
  };

  async function hashFor(key_id: string): Promise<string | null> {
    const [, run_id, attempt] = /^drva_(.+)\.(\d+)$/.exec(key_id) ?? [];
    if (run_id !== undefined) return hashToken(attemptTokens.sign(run_id, Number(attempt)));
    const hash = await lookUp(key_id);
    if (hash !== null) remember(key_id, hash);
    return hash;
  }

  /** A coordinator whose record is away is still itself, and says so to those whom it has met. */
  async function lookUp(key_id: string): Promise<string | null> {
    const before = remembered.get(key_id);
    const found = read.token_hash(key_id);
    if (before === undefined) return found;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<string>((resolve) => (timer = setTimeout(resolve, patienceMs, before)));
    try {
      return await Promise.race([found.catch(() => before), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  function remember(key_id: string, hash: string): void {
    // the one that was asked for last is the last to go
    remembered.delete(key_id);
    remembered.set(key_id, hash);
    if (remembered.size > maxRemembered) remembered.delete(remembered.keys().next().value!);
  }

  /** No attempt token has such a name, so nobody can ask what it is. */
  function strangersKey(key_id: string): string {
    return hashToken(attemptTokens.sign(`no token ${key_id}`, 0));
  }
}

/** Those by which a caller on this machine sees an address of `public_urls`; none for one that TLS proves. */
function loopbackOrigins(url: string): string[] {
  const { protocol, hostname, port } = new URL(url);
  if (protocol !== "http:") return [];
  const addresses = hostname === "localhost" ? ["127.0.0.1", "::1"] : [hostname.replace(/^\[(.*)\]$/, "$1")];
  return addresses.flatMap((address) => originOf(address, port === "" ? 80 : Number(port)) ?? []);
}
