import type { Registered } from "../../model/runner-port.ts";

/** The runner's current id and epoch. Polls and reports share it, so one registration serves both. */
export interface Identity {
  current(): Promise<Registered>;
  /** Waits for a registration in progress, then returns the current identity. */
  settled(): Promise<Registered>;
  /** Registers again unless the runner already has a newer epoch than this one. */
  renew(epoch: number): Promise<void>;
}

/** `register` retries until it succeeds and rejects only when the runner stops. */
export function createIdentity(register: () => Promise<Registered>): Identity {
  let known = register();
  let epochKnown = -1;
  let renewing: Promise<void> | null = null;
  const note = (registered: Registered): Registered => {
    epochKnown = registered.epoch;
    return registered;
  };
  return {
    current: async () => note(await known),
    async settled() {
      await renewing;
      return note(await known);
    },
    async renew(epoch) {
      if (epochKnown > epoch) return;
      renewing ??= (async () => {
        const next = register();
        const registered = await next;
        known = next;
        note(registered);
      })().finally(() => {
        renewing = null;
      });
      await renewing;
    },
  };
}
