import type { RegistrationResult } from "../../model/runner-port.ts";

/** The runner's current id and epoch. Polls and reports share it, so one registration serves both. */
export interface Identity {
  current(): Promise<RegistrationResult>;
  /** Waits for a registration in progress, then returns the current identity. */
  waitForRenewal(): Promise<RegistrationResult>;
  /** Registers again unless the runner already has a newer epoch than this one. */
  renew(epoch: number): Promise<void>;
  /** Whether the runner itself has registered again after this epoch. Waits for a registration in progress. */
  hasRenewed(epoch: number): Promise<boolean>;
}

/** `register` retries until it succeeds and rejects only when the runner stops. */
export function createIdentity(register: () => Promise<RegistrationResult>): Identity {
  let registration = register();
  let latestEpoch = -1;
  let pendingRenewal: Promise<void> | null = null;
  const rememberEpoch = (result: RegistrationResult): RegistrationResult => {
    latestEpoch = result.epoch;
    return result;
  };
  return {
    current: async () => rememberEpoch(await registration),
    async waitForRenewal() {
      await pendingRenewal;
      return rememberEpoch(await registration);
    },
    async renew(epoch) {
      if (latestEpoch > epoch) return;
      pendingRenewal ??= (async () => {
        const renewal = register();
        const result = await renewal;
        registration = renewal;
        rememberEpoch(result);
      })().finally(() => {
        pendingRenewal = null;
      });
      await pendingRenewal;
    },
    async hasRenewed(epoch) {
      // The caller that asked for the registration handles its failure.
      await Promise.allSettled([pendingRenewal]);
      return latestEpoch > epoch;
    },
  };
}
