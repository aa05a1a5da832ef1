/** The states of a run and the moves between them. docs/states.md draws this table. */
export const runStatuses = [
  "pending",
  "claimed",
  "running",
  "waiting",
  "parked",
  "stopping",
  "completed",
  "failed",
  "cancelled",
] as const;
export type RunStatus = (typeof runStatuses)[number];

export const terminalStatuses = ["completed", "failed", "cancelled"] as const;
export type TerminalStatus = (typeof terminalStatuses)[number];

const moves: Record<RunStatus, readonly RunStatus[]> = {
  pending: ["claimed", "running", "failed", "cancelled"],
  // back to pending: a claim that never reached its runner, a lost runner, a drain
  claimed: ["running", "pending", "stopping", "failed", "cancelled"],
  running: ["waiting", "parked", "stopping", "pending", "completed", "failed", "cancelled"],
  waiting: ["running", "stopping", "pending", "failed", "cancelled"],
  parked: ["pending", "failed", "cancelled"],
  stopping: ["completed", "failed", "cancelled", "pending"],
  completed: [],
  failed: [],
  cancelled: [],
};

export function canMove(from: RunStatus, to: RunStatus): boolean {
  return moves[from].includes(to);
}

export function isTerminal(status: RunStatus): status is TerminalStatus {
  return moves[status].length === 0;
}

/** Why a run failed: a closed list. `no_output` never applies to procedural runs. */
export const failureReasons = [
  "exit_nonzero",
  "signalled",
  "timeout",
  "idle",
  "no_output",
  "invalid_output",
  "refused",
  "permission_denied",
  "approval_expired",
  "provider_auth",
  "provider_rate_limit",
  "provider_network",
  "provider_invalid_response",
  "limit_exceeded",
  "command_not_found",
  "dependency_missing",
  "isolation_unavailable",
  "session_not_found",
  "runner_lost",
  "no_matching_runner",
  "budget_exceeded",
  "max_turns",
  "loop",
  "upload_failed",
  "internal",
] as const;
export type FailureReason = (typeof failureReasons)[number];

/** Why something that runs is being ended from outside. */
export const stopReasons = [
  "user",
  "timeout",
  "idle",
  "lease_lost",
  "shutdown",
  "budget",
  "output_limit",
  "disk_limit",
] as const;
export type StopReason = (typeof stopReasons)[number];
