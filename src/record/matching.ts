import type { Demands } from "../model/run.ts";

/** The runner's properties that a run's demands are matched against. */
export interface RunnerFacts {
  runner_id: string;
  hostname: string;
  /** Id of the runner's state directory; null if it did not report one. */
  place_id: string | null;
  project_dir: string;
  executor_profile: string;
  executor_type: string;
  tags: readonly string[];
  require_matching_tags: boolean;
  /** The runner only takes runs that demand it by id. */
  only_pinned: boolean;
}

const exactMatchKeys = [
  "runner_id",
  "hostname",
  "place_id",
  "project_dir",
  "executor_profile",
  "executor_type",
] as const;

/** Returns the demands that this runner does not meet. If the list is empty, the runner may take the run. */
export function findUnmetDemands(demands: Demands, runner: RunnerFacts): (keyof Demands)[] {
  const unmet: (keyof Demands)[] = exactMatchKeys.filter(
    (name) => demands[name] !== undefined && demands[name] !== runner[name],
  );
  if (runner.only_pinned && demands.runner_id === undefined) unmet.push("runner_id");
  const demandedTags = demands.tags ?? [];
  const lacksRequiredTags = runner.require_matching_tags && demandedTags.length === 0;
  if (lacksRequiredTags || demandedTags.some((tag) => !runner.tags.includes(tag))) unmet.push("tags");
  return unmet;
}
