import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A proxy between a browser and its coordinator that can interrupt connections. */
export async function createProxy(to: string) {
  const { hostname, port } = new URL(to);
  const open = new Set<Socket>();
  let whole = true;
  const server = createServer((socket) => {
    if (!whole) return void socket.destroy();
    const upstream = connect(Number(port), hostname);
    for (const [one, another] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      open.add(one);
      one.on("error", () => another.destroy());
      one.on("close", () => {
        open.delete(one);
        another.destroy();
      });
      one.pipe(another);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const disconnectAll = (): void => {
    whole = false;
    for (const socket of open) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut: disconnectAll,
    restore: () => void (whole = true),
    async close() {
      disconnectAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
