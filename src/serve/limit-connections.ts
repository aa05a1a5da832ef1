import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { isLoopbackAddress } from "./guard.ts";

interface Connection {
  address: string;
  /** Requests without a complete response. */
  open: number;
}

/**
 * Each connection costs a file descriptor and memory. Above `max`, this closes the longest-idle connection of the address
 * with the most connections, so no client can lock others out just by connecting.
 */
export function limitConnections(server: Server, max: number): void {
  /** In the order in which they became idle. */
  const connections = new Map<Socket, Connection>();
  server.on("connection", (socket: Socket) => {
    connections.set(socket, { address: getAddress(socket), open: 0 });
    socket.once("close", () => connections.delete(socket));
    if (connections.size > max) findLongestIdle(connections, socket).destroy();
  });
  server.on("request", ({ socket }: { socket: Socket }, outgoing: ServerResponse) => {
    const connection = connections.get(socket);
    if (connection === undefined) return;
    connection.open += 1;
    outgoing.once("close", () => {
      connection.open -= 1;
      if (connection.open === 0 && connections.delete(socket)) connections.set(socket, connection);
    });
  });
}

/** Returns the newest connection if none is idle. */
function findLongestIdle(connections: ReadonlyMap<Socket, Connection>, last: Socket): Socket {
  const counts = new Map<string, number>();
  for (const { address } of connections.values()) counts.set(address, (counts.get(address) ?? 0) + 1);
  const [busiest] = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a));
  for (const [socket, { address, open }] of connections)
    if (address === busiest && open === 0 && socket !== last) return socket;
  return last;
}

/** All loopback addresses count as one, because a local program can use any of them. */
function getAddress({ remoteAddress = "" }: Socket): string {
  const plain = remoteAddress.replace(/^::ffff:/, "");
  return isLoopbackAddress(plain) ? "this machine" : plain;
}
