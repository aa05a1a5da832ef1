import { setImmediate } from "node:timers/promises";
import { getTokenRejection } from "../model/token.ts";
import { authenticate } from "./authenticate.ts";
import type { ServeDeps } from "./deps.ts";
import { Refusal } from "./refusal.ts";
import type { Principal } from "./rule.ts";

/** Rechecks the tokens of open requests, because a token can be revoked or expire during a stream or a held poll. */
export interface TokenWatch {
  /** Rechecks this credential periodically until the returned watch is stopped. */
  watch(header: string | undefined, principal: Principal): Watch;
  /** Rechecks all credentials now. Call it after revoking a token. */
  recheck(): Promise<void>;
}

export interface Watch {
  /** Why the request may no longer continue; null while it may. */
  readonly refusal: Refusal | null;
  /** Calls `callback` when the credential is refused, and again at every later check until `stop`. */
  onRefused(callback: () => void): void;
  /** Idempotent. */
  stop(): void;
}

type TokenWatchDeps = Parameters<typeof authenticate>[1] & Pick<ServeDeps, "onDefect">;

/** A revoked token is noticed within a second, which includes the time of the check itself. */
const checkIntervalMs = 750;
/** The number of credentials that are checked concurrently. Between two batches the event loop gets a turn. */
const batchSize = 100;
const pageSize = 1000;

/** All open requests with one credential. */
interface WatchedCredential {
  token_id: string | null;
  watches: Set<OpenWatch>;
}

/**
 * Reads the store, so it also notices tokens that another process revoked. Requests with the same credential are
 * checked once.
 */
export function createTokenWatch(deps: TokenWatchDeps): TokenWatch {
  const credentials = new Map<string, WatchedCredential>();
  let timer: NodeJS.Timeout | null = null;
  let currentCheck: Promise<void> | null = null;
  let isCheckRequested = false;

  return { watch, recheck };

  function watch(header: string | undefined, principal: Principal): Watch {
    // Auth is off, so there is no token to check.
    if (header === undefined) return { refusal: null, onRefused: () => undefined, stop: () => undefined };
    const credential = credentials.get(header) ?? { token_id: getTokenId(principal), watches: new Set() };
    credentials.set(header, credential);
    const openWatch = createWatch(() => {
      credential.watches.delete(openWatch);
      if (credential.watches.size === 0 && credentials.get(header) === credential) credentials.delete(header);
    });
    credential.watches.add(openWatch);
    // One timer serves all requests. It stops when there is nothing to check; most requests finish before the first check.
    timer ??= setTimeout(() => void tick(), checkIntervalMs).unref();
    return openWatch;
  }

  async function tick(): Promise<void> {
    await recheck();
    timer = credentials.size === 0 ? null : setTimeout(() => void tick(), checkIntervalMs).unref();
  }

  function recheck(): Promise<void> {
    // A check in progress may already have passed a token that was revoked since, so another round follows.
    isCheckRequested = true;
    return (currentCheck ??= checkAll().finally(() => (currentCheck = null)));
  }

  async function checkAll(): Promise<void> {
    try {
      while (isCheckRequested) {
        isCheckRequested = false;
        const unconfirmed = await findUnconfirmed();
        for (let start = 0; start < unconfirmed.length; start += batchSize) {
          if (start > 0) await setImmediate();
          await Promise.all(unconfirmed.slice(start, start + batchSize).map(check));
        }
      }
    } catch (error) {
      // The store failed. Requests stay open, and the next check tries again.
      deps.onDefect(error, "rechecking the tokens of open requests");
    }
  }

  /**
   * Returns the credentials that must be checked one by one. If there are many, reading the list of tokens confirms most
   * of them in a fraction of the time. Only the start of a very long list is read.
   */
  async function findUnconfirmed(): Promise<string[]> {
    const unconfirmed = new Set(credentials.keys());
    if (unconfirmed.size <= batchSize) return [...unconfirmed];
    const headers = new Map<string | null, string>();
    for (const [header, { token_id }] of credentials) headers.set(token_id, header);
    const now = deps.now().toISOString();
    const maxTokens = 10 * unconfirmed.size;
    let before: string | undefined;
    for (let read = 0; read < maxTokens; read += pageSize) {
      const tokens = await deps.store.read.tokens({ limit: pageSize, ...(before === undefined ? {} : { before }) });
      for (const token of tokens)
        if (getTokenRejection(token, now) === null) unconfirmed.delete(headers.get(token.token_id) ?? "");
      before = tokens.at(-1)?.token_id;
      if (tokens.length < pageSize) break;
      await setImmediate();
    }
    return [...unconfirmed];
  }

  async function check(header: string): Promise<void> {
    try {
      await authenticate(header, deps);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      for (const openWatch of credentials.get(header)?.watches ?? []) openWatch.refuse(error);
    }
  }
}

/** Returns null for an attempt token, which is not stored and therefore in no list. */
function getTokenId(principal: Principal): string | null {
  return principal.kind === "token" ? principal.token_id : null;
}

type OpenWatch = Watch & { refuse(refusal: Refusal): void };

function createWatch(stop: () => void): OpenWatch {
  const callbacks: (() => void)[] = [];
  let currentRefusal: Refusal | null = null;
  return {
    get refusal() {
      return currentRefusal;
    },
    onRefused: (callback) => void callbacks.push(callback),
    refuse(refusal) {
      currentRefusal = refusal;
      for (const callback of callbacks) callback();
    },
    stop,
  };
}
