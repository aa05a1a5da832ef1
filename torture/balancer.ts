import { get } from "node:http";
import { connect, createServer, type Socket } from "node:net";

/** One address for several coordinators, as an operator's load balancer has it. */
export interface Balancer {
  url: string;
  close(): Promise<void>;
}

/** How often each is asked how it is, and how long it may take to say so. */
const lookMs = 500;
const answerMs = 1500;

/**
 * Bytes go to whichever of the ports takes the connection, each in its turn. One where nobody listens is passed over, and
 * one that does not say it is well too, while there is another.
 */
export async function startBalancer(at: number, ports: readonly number[]): Promise<Balancer> {
  const open = new Set<Socket>();
  const ill = new Set<number>();
  const looking = ports.map((port) => lookAfter(port, ill));
  let turn = 0;
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (near) => {
    open.add(near);
    near.once("close", () => open.delete(near));
    turn += 1;
    const inTurn = [...ports.slice(turn % ports.length), ...ports.slice(0, turn % ports.length)];
    reach(near, [...inTurn.filter((port) => !ill.has(port)), ...inTurn.filter((port) => ill.has(port))]);
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

function lookAfter(port: number, ill: Set<number>): () => void {
  const look = (): void => {
    const asked = get({ host: "127.0.0.1", port, path: "/health", agent: false, timeout: answerMs }, (answer) => {
      answer.resume();
      if (answer.statusCode === 200) ill.delete(port);
      else ill.add(port);
    });
    asked.on("timeout", () => asked.destroy());
    asked.on("error", () => ill.add(port));
  };
  const timer = setInterval(look, lookMs);
  return () => clearInterval(timer);
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
