/** The states of a run and the transitions between them. docs/states.md shows the diagram. */
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

/**
 * `next`: the allowed transitions. `assigned`: a runner has the run, and the run has exclusive use of its directory and
 * session. `busy`: the run occupies one of its runner's slots and counts toward its agent's `max_concurrent`.
 */
const states: Record<RunStatus, { next: readonly RunStatus[]; assigned?: true; busy?: true }> = {
  // To parked: the agent's daily budget or a shared usage limit is used up.
  pending: { next: ["claimed", "running", "parked", "failed", "cancelled"] },
  // Back to pending: the claim never reached its runner, the runner was lost, or it drained.
  claimed: {
    next: ["running", "pending", "parked", "stopping", "completed", "failed", "cancelled"],
    assigned: true,
    busy: true,
  },
  running: {
    next: ["waiting", "parked", "stopping", "pending", "completed", "failed", "cancelled"],
    assigned: true,
    busy: true,
  },
  waiting: { next: ["running", "parked", "stopping", "pending", "completed", "failed", "cancelled"], assigned: true },
  // No process is alive. See docs/decisions/0025-questions-and-parking.md.
  parked: { next: ["pending", "failed", "cancelled"] },
  stopping: { next: ["completed", "failed", "cancelled"], assigned: true, busy: true },
  completed: { next: [] },
  failed: { next: [] },
  cancelled: { next: [] },
};

export const endedStatuses = ["completed", "failed", "cancelled"] as const;
export type EndedStatus = (typeof endedStatuses)[number];

export const statusSets = {
  open: runStatuses.filter((status) => !hasEnded(status)),
  assigned: runStatuses.filter(isAssigned),
  busy: runStatuses.filter(isBusy),
  ended: endedStatuses,
};

export function canMove(from: RunStatus, to: RunStatus): boolean {
  return states[from].next.includes(to);
}

export function hasEnded(status: RunStatus): status is EndedStatus {
  return states[status].next.length === 0;
}

export function isAssigned(status: RunStatus): boolean {
  return states[status].assigned === true;
}

export function isBusy(status: RunStatus): boolean {
  return states[status].busy === true;
}

/** Why a run failed. `no_output` never applies to procedural runs. */
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

/** Why Drover stops a run or a process. */
export const stopReasons = [
  "user",
  "timeout",
  "idle",
  "lease_lost",
  "shutdown",
  "budget",
  "approval_expired",
  "output_limit",
  "disk_limit",
] as const;
export type StopReason = (typeof stopReasons)[number];
