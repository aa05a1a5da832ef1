import { setImmediate } from "node:timers/promises";
import { authenticate } from "./authenticate.ts";
import type { ServeDeps } from "./deps.ts";
import { Refusal } from "./refusal.ts";

/** Whether those whose requests are still open may go on: a token can end while its stream or held poll is under way. */
export interface Standing {
  /** From now until `leave` this asker is looked at again and again. */
  enter(header: string | undefined): Stay;
  /** Looks at once, after something here may have ended a token. Resolves when everyone was looked at. */
  look(): Promise<void>;
}

export interface Stay {
  /** Why this asker may no longer go on; null while it may. */
  readonly refused: Refusal | null;
  /** Called when it is refused, and with each look after that, until it leaves. */
  whenRefused(callback: () => void): void;
  /** Idempotent. */
  leave(): void;
}

type StandingDeps = Parameters<typeof authenticate>[1] & Pick<ServeDeps, "onDefect">;

/** With the time that a look takes, less than a second. */
const everyMs = 750;
/** Looked at together; between two such groups others get their turn. */
const group = 100;

/**
 * Only the store is asked, so that it does not matter which process ended the token. Everyone with the same header is
 * looked at once.
 */
export function createStanding(deps: StandingDeps): Standing {
  const askers = new Map<string, Set<OneStay>>();
  let timer: NodeJS.Timeout | null = null;
  let looking: Promise<void> | null = null;
  let again = false;

  return { enter, look };

  function enter(header: string | undefined): Stay {
    // auth is off: nothing can end
    if (header === undefined) return { refused: null, whenRefused: () => undefined, leave: () => undefined };
    const stays = askers.get(header) ?? new Set();
    askers.set(header, stays);
    const stay = openStay(() => {
      stays.delete(stay);
      if (stays.size === 0 && askers.get(header) === stays) askers.delete(header);
    });
    stays.add(stay);
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
    while (again) {
      again = false;
      const headers = [...askers.keys()];
      for (let at = 0; at < headers.length; at += group) {
        if (at > 0) await setImmediate();
        const looked = await Promise.allSettled(headers.slice(at, at + group).map(lookAt));
        const fault = looked.find((one) => one.status === "rejected");
        // the store did not answer: nobody is cut off for that, and the next look asks again
        if (fault) return deps.onDefect(fault.reason, "looking at open requests");
      }
    }
  }

  async function lookAt(header: string): Promise<void> {
    try {
      await authenticate(header, deps);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      for (const stay of askers.get(header) ?? []) stay.refuse(error);
    }
  }
}

type OneStay = Stay & { refuse(refusal: Refusal): void };

function openStay(leave: () => void): OneStay {
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
