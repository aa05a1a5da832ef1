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

/** `always`: every write is on disk before the answer. `snapshots`: the default, which may lose some minutes. */
export type Durability = "always" | "snapshots";

const durabilityOptions: Record<Durability, string[]> = {
  always: ["--appendonly", "yes", "--appendfsync", "always", "--save", ""],
  snapshots: ["--appendonly", "no", "--save", "3600 1 300 100 60 10000"],
};

/** Starts a private Redis. Returns null if redis-server is not installed. */
export async function startRedis(directory: string, durability: Durability): Promise<Redis | null> {
  const version = /v=(\S+)/.exec(spawnSync("redis-server", ["--version"]).stdout?.toString("utf8") ?? "")?.[1];
  if (version === undefined) return null;
  mkdirSync(directory, { recursive: true });
  const port = await reservePort();
  const serverArguments = ["--port", String(port), "--bind", "127.0.0.1", "--dir", directory, "--daemonize", "no"];
  const child = owned(
    spawn("redis-server", [...serverArguments, ...durabilityOptions[durability]], {
      stdio: ["ignore", "ignore", "inherit"],
    }),
  );
  for (let tries = 0; !(await respondsToPing(port)); tries++) {
    if (tries > 200 || child.exitCode !== null) throw new Error("redis-server did not start");
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return { port, pid: child.pid ?? 0, version, stop: () => stopChild(child) };
}

function respondsToPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("error", () => resolve(false));
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });
}
