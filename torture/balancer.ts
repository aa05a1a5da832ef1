import { connect, createServer, type Socket } from "node:net";

/** One address for several coordinators, as an operator's load balancer has it. */
export interface Balancer {
  url: string;
  close(): Promise<void>;
}

/** Bytes go to whichever of the ports takes the connection, each in its turn; one where nobody listens is passed over. */
export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const open = new Set<Socket>();
  let turn = 0;
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (near) => {
    open.add(near);
    near.once("close", () => open.delete(near));
    turn += 1;
    reach(near, [...ports.slice(turn % ports.length), ...ports.slice(0, turn % ports.length)]);
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  // a TCP server's address is never a string
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function reach(near: Socket, [port, ...others]: readonly number[]): void {
  // whoever asked left meanwhile
  const leave = (): void => void far?.destroy();
  const far = port === undefined ? null : connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  if (far === null) return void near.resetAndDestroy();
  const passOver = (): void => {
    near.off("close", leave).off("error", leave);
    reach(near, others);
  };
  near.once("close", leave).on("error", leave);
  far.once("error", passOver);
  far.once("connect", () => {
    far.off("error", passOver);
    join(near, far);
  });
}

/** An end is passed on as an end, a break as a break. */
function join(near: Socket, far: Socket): void {
  near.setNoDelay(true);
  near.on("error", () => far.resetAndDestroy());
  far.on("error", () => near.resetAndDestroy());
  far.once("close", () => near.destroySoon());
  near.pipe(far);
  far.pipe(near);
}
