/** The server aborts a transaction that is idle for this long: its coordinator hangs, and all writers wait for it. */
export const idleTransactionMs = 5000;

/**
 * How long to wait for a lock before failing. Longer than a hanging coordinator can keep the lock, and short enough that
 * the caller still waits for the response and no runner loses its lease.
 */
export const lockTimeoutMs = idleTransactionMs + 1000;

/** Longer than `lockTimeoutMs`: by then a statement has the write lock, or has failed to get it. */
export const responseTimeoutMs = lockTimeoutMs + 500;

/** For maintenance, which nobody waits for. */
export const maintenanceTimeoutMs = 60_000;
