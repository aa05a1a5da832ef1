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
  const stopChecks = ports.map((port) => checkHealth(port, unhealthy));
  let turn = 0;
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => {
    open.add(client);
    client.once("close", () => open.delete(client));
    turn += 1;
    const inTurn = [...ports.slice(turn % ports.length), ...ports.slice(0, turn % ports.length)];
    connectTo(client, [
      ...inTurn.filter((port) => !unhealthy.has(port)),
      ...inTurn.filter((port) => unhealthy.has(port)),
    ]);
  });
  await new Promise<void>((resolve) => void server.listen(at, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${at}`,
    async close() {
      for (const stop of stopChecks) stop();
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function checkHealth(port: number, unhealthy: Set<number>): () => void {
  const check = (): void => {
    const request = get({ host: "127.0.0.1", port, path: "/health", agent: false, timeout: timeoutMs }, (answer) => {
      answer.resume();
      if (answer.statusCode === 200) unhealthy.delete(port);
      else unhealthy.add(port);
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => unhealthy.add(port));
  };
  const timer = setInterval(check, checkMs);
  return () => clearInterval(timer);
}

function connectTo(client: Socket, [port, ...others]: readonly number[]): void {
  // The client has disconnected in the meantime.
  const leave = (): void => void upstream?.destroy();
  const upstream = port === undefined ? null : connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  if (upstream === null) return void client.resetAndDestroy();
  const tryNext = (): void => {
    client.off("close", leave).off("error", leave);
    connectTo(client, others);
  };
  client.once("close", leave).on("error", leave);
  upstream.once("error", tryNext);
  upstream.once("connect", () => {
    upstream.off("error", tryNext);
    pipeBoth(client, upstream);
  });
}

/** Passes an end on as an end and a reset as a reset. */
function pipeBoth(client: Socket, upstream: Socket): void {
  client.setNoDelay(true);
  client.on("error", () => upstream.resetAndDestroy());
  upstream.on("error", () => client.resetAndDestroy());
  upstream.once("close", () => client.destroySoon());
  client.pipe(upstream);
  upstream.pipe(client);
}
