import { get } from "node:http";
import { connect, createServer, type Socket } from "node:net";

/** A load balancer: one address for several coordinators. */
export interface Balancer {
  url: string;
  close(): Promise<void>;
}

/** Interval and timeout of health checks. */
const checkMs = 500;
const timeoutMs = 1500;

/**
 * Forwards each connection to the next port in turn. Skips ports that refuse the connection and, as long as another is
 * left, ports whose health check fails.
 */
export async function startBalancer(at: number, ports: readonly number[]): Promise<Balancer> {
  const open = new Set<Socket>();
  const unhealthy = new Set<number>();
  const looking = ports.map((port) => checkHealth(port, unhealthy));
  let turn = 0;
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (near) => {
    open.add(near);
    near.once("close", () => open.delete(near));
    turn += 1;
    const inTurn = [...ports.slice(turn % ports.length), ...ports.slice(0, turn % ports.length)];
    reach(near, [...inTurn.filter((port) => !unhealthy.has(port)), ...inTurn.filter((port) => unhealthy.has(port))]);
  });
  await new Promise<void>((resolve) => void server.listen(at, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${at}`,
    async close() {
      for (const stop of looking) stop();
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function checkHealth(port: number, unhealthy: Set<number>): () => void {
  const look = (): void => {
    const asked = get({ host: "127.0.0.1", port, path: "/health", agent: false, timeout: timeoutMs }, (answer) => {
      answer.resume();
      if (answer.statusCode === 200) unhealthy.delete(port);
      else unhealthy.add(port);
    });
    asked.on("timeout", () => asked.destroy());
    asked.on("error", () => unhealthy.add(port));
  };
  const timer = setInterval(look, checkMs);
  return () => clearInterval(timer);
}

function reach(near: Socket, [port, ...others]: readonly number[]): void {
  // The client has disconnected in the meantime.
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

/** Passes an end on as an end and a reset as a reset. */
function join(near: Socket, far: Socket): void {
  near.setNoDelay(true);
  near.on("error", () => far.resetAndDestroy());
  far.on("error", () => near.resetAndDestroy());
  far.once("close", () => near.destroySoon());
  near.pipe(far);
  far.pipe(near);
}
