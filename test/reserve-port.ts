import { createServer, type Server } from "node:net";

/** Of the ports this process reserved. They stay open until it ends. */
const guards: Server[] = [];

/**
 * A port on 127.0.0.1 that stays the caller's until this process ends, also while nothing listens there: between the
 * choice and the first start of a server, and between its restarts.
 *
 * It lies below the range from which systems pick ports by themselves, and a listener on the same port of another
 * loopback address marks it as taken for every other process that reserves ports.
 */
export async function reservePort(choose: () => number = anyPort): Promise<number> {
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

function anyPort(): number {
  return 20_000 + Math.floor(Math.random() * 12_000);
}

/** Linux has the whole of 127.0.0.0/8. Elsewhere only ::1 is there besides 127.0.0.1. */
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
