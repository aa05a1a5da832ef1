/**
 * A runner that lives as long as one command has a name of its own, which its id begins with. Runs that the command
 * makes demand it by that id.
 */
export function shortLivedName(pid: number, unique: string): string {
  return `run-${pid}-${unique.slice(0, 8)}`;
}

/** The name in the id of such a runner; null for any other. */
export function shortLivedNameOf(runner_id: string | undefined): string | null {
  return /^(run-\d+-[0-9a-f]{8})-/.exec(runner_id ?? "")?.[1] ?? null;
}
