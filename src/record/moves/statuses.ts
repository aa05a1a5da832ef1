import { statusSets } from "../../model/states.ts";

/**
 * The condition that a run's status is in one of the model's sets. It repeats the condition of the partial indexes word for
 * word. Otherwise SQLite would not use them.
 */
export function statusIn(set: keyof typeof statusSets, column = "status"): string {
  return `${column} in (${statusSets[set].map((status) => `'${status}'`).join(", ")})`;
}

/** Runs that are assigned to a runner and have not ended. Matches the index `runs_by_runner`. */
export const isAssignedToRunner = `runs.agent_rev_id is not null and ${statusIn("assigned", "runs.status")}`;

/** Runs that a runner may claim. Matches the index `runs_to_claim`. */
export const isClaimable = `runs.status = 'pending' and runs.blocked_by is null`;

/** Claimable runs that a person wants to continue at once. Matches the index `runs_resumed`. */
export const isResumed = `${isClaimable} and runs.resumed = 1`;
