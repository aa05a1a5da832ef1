import type { ServerResponse } from "node:http";

/**
 * Calls back once the response is closed, immediately if it already is. Watches the connection too, because a pipelined
 * response that is still queued gets no close event of its own. Returns a function that unsubscribes.
 */
export function whenClosed(outgoing: ServerResponse, callback: () => void): () => void {
  const { socket } = outgoing.req;
  if (outgoing.destroyed || socket.destroyed) {
    callback();
    return () => undefined;
  }
  const onClose = (): void => {
    unsubscribe();
    callback();
  };
  const unsubscribe = (): void => {
    outgoing.off("close", onClose);
    socket.off("close", onClose);
  };
  outgoing.once("close", onClose);
  // Every pipelined request of a connection adds a listener.
  socket.setMaxListeners(0).once("close", onClose);
  return unsubscribe;
}
