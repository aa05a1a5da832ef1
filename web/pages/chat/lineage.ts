import type { SessionWithRuns } from "../../data/queries.ts";

/**
 * The runs that make up a conversation, oldest first: those inherited from the sessions it was forked from, and its own.
 * `complete` is false if an ancestor has too many runs to list, so that its turns cannot be counted.
 */
export function toLineage(session: SessionWithRuns | null): {
  inherited: readonly string[];
  runIds: readonly string[];
  complete: boolean;
} {
  if (session === null) return { inherited: [], runIds: [], complete: false };
  const runIds = session.versions.map(({ run_id }) => run_id).toReversed();
  let inherited: string[] = [];
  let complete = true;
  const [, ...forks] = [...session.ancestors, { ...session, runs: session.versions }];
  for (const [index, ancestor] of session.ancestors.entries()) {
    const runs = ancestor.runs.map(({ run_id }) => run_id).toReversed();
    if (runs.length < ancestor.run_count) complete = false;
    inherited.push(...runs);
    const fork = forks[index]!;
    // Run ids sort by time.
    const first = fork.runs.at(-1)?.run_id;
    if (fork.fork_at_turn !== null) inherited = inherited.slice(0, fork.fork_at_turn);
    else if (first !== undefined) inherited = inherited.filter((run_id) => run_id < first);
  }
  return complete ? { inherited, runIds, complete } : { inherited: [], runIds, complete };
}
