import type { ServerResponse } from "node:http";

/** Longer than the heartbeat interval of streams. */
export const stalledMs = 60_000;

/**
 * Disconnects a client that stops reading its response, because unsent data occupies memory. The client can ask again, and
 * resume a stream after the last event it received.
 */
export function disconnectStalled(outgoing: ServerResponse, afterMs = stalledMs): void {
  outgoing.setTimeout(afterMs, () => void outgoing.destroy());
}
