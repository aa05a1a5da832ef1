import { createServer, type Server } from "node:net";

/** Listeners that mark the ports reserved by this process. They stay open until it exits. */
const guards: Server[] = [];

/**
 * Reserves a port on 127.0.0.1 until this process exits, even while nothing listens on it: before the first start of a
 * server and between its restarts.
 *
 * The port is below the ephemeral range, and a listener on the same port of another loopback address marks it as taken
 * for other processes that reserve ports.
 */
export async function reservePort(choose: () => number = chooseAnyPort): Promise<number> {
  for (;;) {
    const port = choose();
    const guard = await tryListen(port, guardAddress);
    if (guard === null) continue;
    const probe = await tryListen(port, "127.0.0.1");
    if (probe === null) {
      guard.close();
      continue;
    }
    await new Promise((resolve) => probe.close(resolve));
    guards.push(guard.unref());
    return port;
  }
}

function chooseAnyPort(): number {
  return 20_000 + Math.floor(Math.random() * 12_000);
}

/** Linux has all of 127.0.0.0/8. Other systems have only ::1 besides 127.0.0.1. */
const guardAddress = process.platform === "linux" ? "127.0.0.2" : "::1";

function tryListen(port: number, host: string): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(null) : reject(error),
    );
    server.listen(port, host, () => resolve(server));
  });
}
