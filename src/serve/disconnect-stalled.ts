import type { ServerResponse } from "node:http";

/** A reader that takes nothing for so long is not there, or does not mean to read. Streams have a heartbeat more often. */
export const stalledMs = 60_000;

/**
 * Ends the connection of a reader that takes nothing of an answer for so long: what waits for it takes up memory. It may ask
 * again, of a stream from the last event it has seen.
 */
export function disconnectStalled(outgoing: ServerResponse, afterMs = stalledMs): void {
  outgoing.setTimeout(afterMs, () => void outgoing.destroy());
}
