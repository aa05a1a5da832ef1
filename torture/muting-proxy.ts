import { connect, createServer, type Socket } from "node:net";

/** A proxy between coordinators and their database that can hold back all traffic without breaking connections. */
export interface MutingProxy {
  port: number;
  mute(): void;
  /** Forwards the traffic held back. */
  unmute(): void;
  close(): Promise<void>;
}

export async function startMutingProxy(port: number): Promise<MutingProxy> {
  const pairs = new Set<[Socket, Socket]>();
  let muted = false;
  const server = createServer({ pauseOnConnect: true }, (near) => {
    const far = connect(port, "127.0.0.1").pause();
    const pair: [Socket, Socket] = [near, far];
    pairs.add(pair);
    const leave = (): void => {
      pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const [from, to] of [pair, [far, near] as const]) {
      from.on("data", (chunk: Buffer) => void to.write(chunk));
      from.on("error", leave).on("close", leave);
    }
    if (!muted) for (const socket of pair) socket.resume();
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const each = (act: (socket: Socket) => unknown): void => {
    for (const pair of pairs) for (const socket of pair) act(socket);
  };
  return {
    // A TCP server's address is never a string.
    port: (server.address() as { port: number }).port,
    mute() {
      muted = true;
      each((socket) => socket.pause());
    },
    unmute() {
      muted = false;
      each((socket) => socket.resume());
    },
    async close() {
      each((socket) => socket.destroy());
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
