import type { LoadedProfile } from "../define/profiles.ts";
import { HostError } from "../model/errors.ts";
import { type RunnerOptions, startRunner } from "../runner.ts";
import type { ShortLivedRunner } from "./short-lived-runners.ts";

/**
 * Cleans up after short-lived runners whose process was killed: kills their orphans, ships their logs, ends their runs as
 * runner_lost and removes their directories. It starts each runner once more under its old name and stops it.
 */
export async function sweepShortLived(
  deadRunners: readonly ShortLivedRunner[],
  options: Pick<RunnerOptions, "port" | "stateDirectory" | "env" | "maxOutputKb" | "onNotice">,
): Promise<void> {
  for (const { name, projectDir, loaded } of deadRunners) {
    // Shipping logs needs no executor, so the user's module is not loaded.
    const { command: _command, module: _module, ...profile } = loaded.profile;
    const withoutExecutor: LoadedProfile = {
      ...loaded,
      module: null,
      profile: { ...profile, type: "procedural", config: {} },
    };
    try {
      const profiles = [{ loaded: withoutExecutor, agents: [] }];
      await (await startRunner({ ...options, profiles, projectDir, name, shortLived: true })).stop();
    } catch (error) {
      // DROVER-STA-001: another process is already cleaning up.
      if (!(error instanceof HostError && error.code === "DROVER-STA-001")) throw error;
    }
  }
}
