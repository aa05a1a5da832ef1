/** A transaction that stands still for so long is ended by the server: its coordinator hangs, and everybody waits. */
export const longestPauseMs = 5000;

/**
 * Who waits longer for a lock is told so while somebody still listens. Longer than a coordinator that stands still may
 * keep it, shorter than a runner's lease lasts after its last report.
 */
export const longestLockMs = longestPauseMs + 1000;

/** A statement has its turn to write by then, or was told that it has not. */
export const longestAnswerMs = longestLockMs + 500;

/** Of what tidies up: nobody waits for it. */
export const longestTidyingMs = 60_000;
