import { spawn, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { connect } from "node:net";
import { reservePort } from "../../test/reserve-port.ts";
import { owned, stopChild } from "../dispatch/children.ts";

export interface Redis {
  port: number;
  pid: number;
  version: string;
  stop(): Promise<void>;
}

/** `always`: every write is on the disk before it is answered; `snapshots`: as Redis comes, some minutes may be lost. */
export type Keeping = "always" | "snapshots";

const keepings: Record<Keeping, string[]> = {
  always: ["--appendonly", "yes", "--appendfsync", "always", "--save", ""],
  snapshots: ["--appendonly", "no", "--save", "3600 1 300 100 60 10000"],
};

/** A Redis of our own; null where there is none to start. */
export async function startRedis(directory: string, keeping: Keeping): Promise<Redis | null> {
  const version = /v=(\S+)/.exec(spawnSync("redis-server", ["--version"]).stdout?.toString("utf8") ?? "")?.[1];
  if (version === undefined) return null;
  mkdirSync(directory, { recursive: true });
  const port = await reservePort();
  const place = ["--port", String(port), "--bind", "127.0.0.1", "--dir", directory, "--daemonize", "no"];
  const child = owned(
    spawn("redis-server", [...place, ...keepings[keeping]], { stdio: ["ignore", "ignore", "inherit"] }),
  );
  for (let tries = 0; !(await answers(port)); tries++) {
    if (tries > 200 || child.exitCode !== null) throw new Error("redis-server did not start");
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return { port, pid: child.pid ?? 0, version, stop: () => stopChild(child) };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("error", () => resolve(false));
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });
}
