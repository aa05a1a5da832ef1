import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { isLoopbackAddress } from "./guard.ts";

interface Connection {
  address: string;
  /** Number of requests whose response is not complete. */
  openRequests: number;
}

/**
 * Each connection costs a file descriptor and memory. Above `max`, this closes the longest-idle connection of the address
 * with the most connections, so no client can lock others out just by connecting.
 */
export function limitConnections(server: Server, max: number): void {
  /** In the order in which they became idle. */
  const connections = new Map<Socket, Connection>();
  server.on("connection", (socket: Socket) => {
    connections.set(socket, { address: getAddressKey(socket), openRequests: 0 });
    socket.once("close", () => connections.delete(socket));
    if (connections.size > max) findLongestIdle(connections, socket).destroy();
  });
  server.on("request", ({ socket }: { socket: Socket }, outgoing: ServerResponse) => {
    const connection = connections.get(socket);
    if (connection === undefined) return;
    connection.openRequests += 1;
    outgoing.once("close", () => {
      connection.openRequests -= 1;
      if (connection.openRequests === 0 && connections.delete(socket)) connections.set(socket, connection);
    });
  });
}

/** Returns the newest connection if none is idle. */
function findLongestIdle(connections: ReadonlyMap<Socket, Connection>, newest: Socket): Socket {
  const counts = new Map<string, number>();
  for (const { address } of connections.values()) counts.set(address, (counts.get(address) ?? 0) + 1);
  const [busiest] = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a));
  for (const [socket, { address, openRequests }] of connections)
    if (address === busiest && openRequests === 0 && socket !== newest) return socket;
  return newest;
}

/** All loopback addresses count as one, because a local program can use any of them. */
function getAddressKey({ remoteAddress = "" }: Socket): string {
  const plain = remoteAddress.replace(/^::ffff:/, "");
  return isLoopbackAddress(plain) ? "this machine" : plain;
}
