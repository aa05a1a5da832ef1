import { setImmediate } from "node:timers/promises";
import { tokenRejection } from "../model/token.ts";
import { authenticate } from "./authenticate.ts";
import type { ServeDeps } from "./deps.ts";
import { Refusal } from "./refusal.ts";
import type { Principal } from "./rule.ts";

/** Whether those whose requests are still open may go on: a token can end while its stream or held poll is under way. */
export interface TokenWatch {
  /** From now until `leave` this asker is looked at again and again. */
  enter(header: string | undefined, principal: Principal): Watch;
  /** Looks at once, after something here may have ended a token. Resolves when everyone was looked at. */
  look(): Promise<void>;
}

export interface Watch {
  /** Why this asker may no longer go on; null while it may. */
  readonly refused: Refusal | null;
  /** Called when it is refused, and with each look after that, until it leaves. */
  whenRefused(callback: () => void): void;
  /** Idempotent. */
  leave(): void;
}

type TokenWatchDeps = Parameters<typeof authenticate>[1] & Pick<ServeDeps, "onDefect">;

/** With the time that a look takes, less than a second. */
const everyMs = 750;
/** Looked at together; between two such groups others get their turn. */
const group = 100;
const page = 1000;

/** All who came with one header. */
interface Asker {
  token_id: string | null;
  stays: Set<OpenWatch>;
}

/**
 * Only the store is asked, so that it does not matter which process ended the token. Everyone with the same header is
 * looked at once.
 */
export function createTokenWatch(deps: TokenWatchDeps): TokenWatch {
  const askers = new Map<string, Asker>();
  let timer: NodeJS.Timeout | null = null;
  let looking: Promise<void> | null = null;
  let again = false;

  return { enter, look };

  function enter(header: string | undefined, principal: Principal): Watch {
    // auth is off: nothing can end
    if (header === undefined) return { refused: null, whenRefused: () => undefined, leave: () => undefined };
    const asker = askers.get(header) ?? { token_id: tokenIdOf(principal), stays: new Set() };
    askers.set(header, asker);
    const stay = createWatch(() => {
      asker.stays.delete(stay);
      if (asker.stays.size === 0 && askers.get(header) === asker) askers.delete(header);
    });
    asker.stays.add(stay);
    // one timer for all, which ends with the first look that finds nobody: most requests are over before it
    timer ??= setTimeout(() => void tick(), everyMs).unref();
    return stay;
  }

  async function tick(): Promise<void> {
    await look();
    timer = askers.size === 0 ? null : setTimeout(() => void tick(), everyMs).unref();
  }

  function look(): Promise<void> {
    // one that is under way may have passed by already what has changed since
    again = true;
    return (looking ??= lookAtAll().finally(() => (looking = null)));
  }

  async function lookAtAll(): Promise<void> {
    try {
      while (again) {
        again = false;
        const unsure = await notGoodByList();
        for (let at = 0; at < unsure.length; at += group) {
          if (at > 0) await setImmediate();
          await Promise.all(unsure.slice(at, at + group).map(lookAt));
        }
      }
    } catch (fault) {
      // the store did not answer: nobody is cut off for that, and the next look asks again
      deps.onDefect(fault, "looking at open requests");
    }
  }

  /**
   * Who has to be looked at one by one. Of many, those whose token is good according to the list of tokens do not: it
   * is read in a fraction of the time. Where it is mostly tokens of others, only its beginning is.
   */
  async function notGoodByList(): Promise<string[]> {
    const unsure = new Set(askers.keys());
    if (unsure.size <= group) return [...unsure];
    const headers = new Map<string | null, string>();
    for (const [header, { token_id }] of askers) headers.set(token_id, header);
    const at = deps.now().toISOString();
    const enough = 10 * unsure.size;
    let before: string | undefined;
    for (let read = 0; read < enough; read += page) {
      const tokens = await deps.store.read.tokens({ limit: page, ...(before === undefined ? {} : { before }) });
      for (const token of tokens)
        if (tokenRejection(token, at) === null) unsure.delete(headers.get(token.token_id) ?? "");
      before = tokens.at(-1)?.token_id;
      if (tokens.length < page) break;
      await setImmediate();
    }
    return [...unsure];
  }

  async function lookAt(header: string): Promise<void> {
    try {
      await authenticate(header, deps);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      for (const stay of askers.get(header)?.stays ?? []) stay.refuse(error);
    }
  }
}

/** Those of attempts are in no list. */
function tokenIdOf(principal: Principal): string | null {
  return principal.kind === "token" ? principal.token_id : null;
}

type OpenWatch = Watch & { refuse(refusal: Refusal): void };

function createWatch(leave: () => void): OpenWatch {
  const callbacks: (() => void)[] = [];
  let refused: Refusal | null = null;
  return {
    get refused() {
      return refused;
    },
    whenRefused: (callback) => void callbacks.push(callback),
    refuse(refusal) {
      refused = refusal;
      for (const callback of callbacks) callback();
    },
    leave,
  };
}
