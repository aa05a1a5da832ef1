import { statusSets } from "../../model/states.ts";

/**
 * The condition that a run's status is in one of the model's sets. Word for word what the partial indexes of the migrations
 * say, which is how SQLite knows that it may use them.
 */
export function statusIn(set: keyof typeof statusSets, column = "status"): string {
  return `${column} in (${statusSets[set].map((status) => `'${status}'`).join(", ")})`;
}

/** Runs that a runner was handed and has not brought to an end, as `runs_by_runner` has them. */
export const isAssigned = `runs.agent_rev_id is not null and ${statusIn("held", "runs.status")}`;

/** Runs that a runner may claim, as `runs_to_claim` has them. */
export const isClaimable = `runs.status = 'pending' and runs.blocked_by is null`;

/** Those of them that somebody wants to go on at once, as `runs_resumed` has them. */
export const isResumed = `${isClaimable} and runs.resumed = 1`;
