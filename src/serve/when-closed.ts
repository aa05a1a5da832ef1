import type { ServerResponse } from "node:http";

/**
 * Calls back once there is nobody left to write to: at once where that is so already, as whoever asked may have left while
 * the record was asked. The connection is watched too: an answer that waits behind another one hears nothing of its end.
 * Gives what takes it back.
 */
export function whenClosed(outgoing: ServerResponse, callback: () => void): () => void {
  const { socket } = outgoing.req;
  if (outgoing.destroyed || socket.destroyed) {
    callback();
    return () => undefined;
  }
  const closed = (): void => {
    takeBack();
    callback();
  };
  const takeBack = (): void => {
    outgoing.off("close", closed);
    socket.off("close", closed);
  };
  outgoing.once("close", closed);
  // requests sent at once over one connection each watch it
  socket.setMaxListeners(0).once("close", closed);
  return takeBack;
}
