import type { Demands } from "../model/run.ts";

/** The facts of a runner that demands are compared with. */
export interface RunnerFacts {
  runner_id: string;
  hostname: string;
  /** Id of the state directory it works in; null if it did not report one. */
  place_id: string | null;
  project_dir: string;
  executor_profile: string;
  executor_type: string;
  tags: readonly string[];
  require_matching_tags: boolean;
  /** It only takes runs that demand it by id. */
  only_pinned: boolean;
}

const equal = ["runner_id", "hostname", "place_id", "project_dir", "executor_profile", "executor_type"] as const;

/** Returns the demands that this runner does not meet. If there are none, it may take the run. */
export function unmetDemands(demands: Demands, runner: RunnerFacts): (keyof Demands)[] {
  const unmet: (keyof Demands)[] = equal.filter(
    (name) => demands[name] !== undefined && demands[name] !== runner[name],
  );
  if (runner.only_pinned && demands.runner_id === undefined) unmet.push("runner_id");
  const wanted = demands.tags ?? [];
  const untagged = runner.require_matching_tags && wanted.length === 0;
  if (untagged || wanted.some((tag) => !runner.tags.includes(tag))) unmet.push("tags");
  return unmet;
}
