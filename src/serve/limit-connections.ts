import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { isLoopbackAddress } from "./guard.ts";

interface Connection {
  address: string;
  /** Requests that are not answered yet. */
  open: number;
}

/**
 * Each connection is a descriptor and some memory. Beyond `most`, one without an open request is closed: of those of the
 * address that has the most connections, the one that was idle longest. So nobody keeps others out by connections alone.
 */
export function limitConnections(server: Server, most: number): void {
  /** In the order in which they became idle. */
  const all = new Map<Socket, Connection>();
  server.on("connection", (socket: Socket) => {
    all.set(socket, { address: addressOf(socket), open: 0 });
    socket.once("close", () => all.delete(socket));
    if (all.size > most) longestIdle(all, socket).destroy();
  });
  server.on("request", ({ socket }: { socket: Socket }, outgoing: ServerResponse) => {
    const connection = all.get(socket);
    if (connection === undefined) return;
    connection.open += 1;
    outgoing.once("close", () => {
      connection.open -= 1;
      if (connection.open === 0 && all.delete(socket)) all.set(socket, connection);
    });
  });
}

/** Where none is idle: the one that came last. */
function longestIdle(all: ReadonlyMap<Socket, Connection>, last: Socket): Socket {
  const counts = new Map<string, number>();
  for (const { address } of all.values()) counts.set(address, (counts.get(address) ?? 0) + 1);
  const [busiest] = [...counts].reduce((one, other) => (other[1] > one[1] ? other : one));
  for (const [socket, { address, open }] of all)
    if (address === busiest && open === 0 && socket !== last) return socket;
  return last;
}

/** All of this machine are one: a program can use any of its loopback addresses. */
function addressOf({ remoteAddress = "" }: Socket): string {
  const plain = remoteAddress.replace(/^::ffff:/, "");
  return isLoopbackAddress(plain) ? "this machine" : plain;
}
