import type { SessionWithRuns } from "../../data/queries.ts";

/**
 * Returns the runs that make up a conversation, oldest first: those inherited from the sessions it was forked from, and its
 * own. `isComplete` is false if there is no session, or if an ancestor has too many runs to list. Its turns cannot be
 * counted then, and `inheritedRunIds` is empty.
 */
export function toLineage(session: SessionWithRuns | null): {
  inheritedRunIds: readonly string[];
  runIds: readonly string[];
  isComplete: boolean;
} {
  if (session === null) return { inheritedRunIds: [], runIds: [], isComplete: false };
  const runIds = session.versions.map(({ run_id }) => run_id).toReversed();
  let inheritedRunIds: string[] = [];
  let isComplete = true;
  const [, ...forks] = [...session.ancestors, { ...session, runs: session.versions }];
  for (const [index, ancestor] of session.ancestors.entries()) {
    const runs = ancestor.runs.map(({ run_id }) => run_id).toReversed();
    if (runs.length < ancestor.run_count) isComplete = false;
    inheritedRunIds.push(...runs);
    const fork = forks[index]!;
    // Run ids sort by time.
    const first = fork.runs.at(-1)?.run_id;
    if (fork.fork_at_turn !== null) inheritedRunIds = inheritedRunIds.slice(0, fork.fork_at_turn);
    else if (first !== undefined) inheritedRunIds = inheritedRunIds.filter((run_id) => run_id < first);
  }
  return isComplete ? { inheritedRunIds, runIds, isComplete } : { inheritedRunIds: [], runIds, isComplete };
}
