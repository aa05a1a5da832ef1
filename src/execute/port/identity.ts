import type { Registered } from "../../model/runner-port.ts";

/** Who this runner is to the coordinator now. Both lanes share it, so that one registration serves both. */
export interface Identity {
  current(): Promise<Registered>;
  /** The same, once a registration that is under way is done. */
  settled(): Promise<Registered>;
  /** Registers again, unless that has been done since `epoch`. Resolves when there is a newer one. */
  renew(epoch: number): Promise<void>;
}

/** `register` goes on trying until it succeeds, and rejects only when it is told to stop. */
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
