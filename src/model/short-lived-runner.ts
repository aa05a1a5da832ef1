/**
 * The name of a runner that lives as long as one command. Its runner_id starts with this name, and the command's runs
 * demand that runner_id.
 */
export function createShortLivedName(pid: number, unique: string): string {
  return `run-${pid}-${unique.slice(0, 8)}`;
}

/** Extracts the name from the id of a short-lived runner. null for other runners. */
export function parseShortLivedName(runner_id: string | undefined): string | null {
  return /^(run-\d+-[0-9a-f]{8})-/.exec(runner_id ?? "")?.[1] ?? null;
}
