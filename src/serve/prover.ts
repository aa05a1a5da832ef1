import type { TokenReads } from "../model/token.ts";
import { hashToken, isLoopbackOrigin, formatOrigin, computeProof } from "../wire/proof.ts";
import type { ProofRequest } from "../wire/proof-request.ts";
import type { AttemptTokens } from "./attempt-token.ts";

export type Prove = (request: ProofRequest, localOrigin: string | null) => Promise<string | null>;

interface ProverDeps {
  read: Pick<TokenReads, "token_hash">;
  attemptTokens: Pick<AttemptTokens, "sign">;
  publicUrls: readonly string[];
  /** Origins of the Unix sockets that this coordinator listens on. */
  sockets: ReadonlySet<string>;
}

/** If the record does not respond within this time, tokens proved before are proved from memory. */
const recordTimeoutMs = 2000;
const maxRememberedTokens = 1000;

/**
 * Proves to callers that this coordinator knows their token. It responds only for the address the connection arrived at, for
 * its sockets and for `public_urls`, so a proof relayed by an impostor on another port is useless. An unknown token gets
 * a response of the same form, stable per request, so a caller cannot find out which tokens exist.
 */
export function createProver({ read, attemptTokens, publicUrls, sockets }: ProverDeps): Prove {
  const publicOrigins = new Set(publicUrls.flatMap(toLoopbackOrigins));
  const remembered = new Map<string, string>();
  return async ({ nonce, key_id, origin }, localOrigin) => {
    const isOwnAddress = isLoopbackOrigin(origin) && (origin === localOrigin || publicOrigins.has(origin));
    if (!isOwnAddress && !sockets.has(origin)) return null;
    const hash = (await findHash(key_id)) ?? computeDecoyHash(key_id);
    return computeProof(hash, nonce, origin).toString("hex");
  };

  async function findHash(key_id: string): Promise<string | null> {
    const [, run_id, attempt] = /^drva_(.+)\.(\d+)$/.exec(key_id) ?? [];
    if (run_id !== undefined) return hashToken(attemptTokens.sign(run_id, Number(attempt)));
    const hash = await lookUp(key_id);
    if (hash !== null) remember(key_id, hash);
    return hash;
  }

  /** While the record is unavailable, known tokens are proved from memory, so clients still recognize the coordinator. */
  async function lookUp(key_id: string): Promise<string | null> {
    const rememberedHash = remembered.get(key_id);
    const lookup = read.token_hash(key_id);
    if (rememberedHash === undefined) return lookup;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<string>((resolve) => (timer = setTimeout(resolve, recordTimeoutMs, rememberedHash)));
    try {
      return await Promise.race([lookup.catch(() => rememberedHash), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  function remember(key_id: string, hash: string): void {
    // Least recently used entries are evicted first.
    remembered.delete(key_id);
    remembered.set(key_id, hash);
    if (remembered.size > maxRememberedTokens) remembered.delete(remembered.keys().next().value!);
  }

  /** Returns a hash that belongs to no token: no run has such an id, so nobody can obtain this attempt token. */
  function computeDecoyHash(key_id: string): string {
    return hashToken(attemptTokens.sign(`no token ${key_id}`, 0));
  }
}

/** Returns the loopback origins under which local callers see a public URL. An https URL has none: TLS is its proof. */
function toLoopbackOrigins(url: string): string[] {
  const { protocol, hostname, port } = new URL(url);
  if (protocol !== "http:") return [];
  const addresses = hostname === "localhost" ? ["127.0.0.1", "::1"] : [hostname.replace(/^\[(.*)\]$/, "$1")];
  return addresses.flatMap((address) => formatOrigin(address, port === "" ? 80 : Number(port)) ?? []);
}
