import type { LoadedProfile } from "../define/profiles.ts";
import { HostError } from "../model/errors.ts";
import { type RunnerOptions, startRunner } from "../runner.ts";
import type { ShortLived } from "./short-lived-runners.ts";

/**
 * Ends what the short-lived runners of dead processes left: kills their orphans, ships their logs, ends their runs as
 * runner_lost and removes their directories. It does so by being each of them once more, with no run of its own.
 */
export async function sweepShortLived(
  dead: readonly ShortLived[],
  options: Pick<RunnerOptions, "port" | "stateDirectory" | "env" | "maxOutputKb" | "onNotice">,
): Promise<void> {
  for (const { name, projectDir, loaded } of dead) {
    // no executor is needed to ship a log, and a module of the user's is not to be loaded for it
    const { command: _command, module: _module, ...profile } = loaded.profile;
    const plain: LoadedProfile = { ...loaded, module: null, profile: { ...profile, type: "procedural", config: {} } };
    try {
      const profiles = [{ loaded: plain, agents: [] }];
      await (await startRunner({ ...options, profiles, projectDir, name, shortLived: true })).stop();
    } catch (error) {
      // another process sweeps it
      if (!(error instanceof HostError && error.code === "DROVER-STA-001")) throw error;
    }
  }
}
