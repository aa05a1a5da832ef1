/** The server aborts a transaction that is idle for this long: its coordinator hangs, and everybody waits for it. */
export const idleTransactionMs = 5000;

/**
 * How long to wait for a lock before failing, while the caller still listens. Longer than a hanging coordinator can keep the
 * lock, and shorter than a runner's lease lasts after its last report.
 */
export const lockTimeoutMs = idleTransactionMs + 1000;

/** By then a statement has got the write lock, or has failed to get it. */
export const answerTimeoutMs = lockTimeoutMs + 500;

/** For maintenance, which nobody waits for. */
export const maintenanceTimeoutMs = 60_000;
