import { appendFileSync, chownSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Guard } from "./guard.ts";
import { followLog } from "./log.ts";
import { ordinaryUser } from "./user.mjs";

export type Settings = Readonly<Record<string, string | number>>;

export interface ClusterOptions {
  /** The folder with `initdb`. */
  programs: string;
  /** Of the superuser `postgres`. */
  password: string;
  settings: Settings;
}

/** Makes a data directory in the guard's folder and returns its path. */
export async function createCluster(guard: Guard, options: ClusterOptions): Promise<string> {
  const data = join(guard.folder, "data");
  const secret = join(guard.folder, "password");
  writeFileSync(secret, options.password, { mode: 0o600 });
  const user = ordinaryUser();
  if (user) chownSync(secret, user.uid, user.gid);

  const heard = followLog(guard);
  const initialize = async (locale: string): Promise<string> => {
    const program = guard.run(
      join(options.programs, "initdb"),
      `--pgdata=${data}`,
      "--username=postgres",
      `--pwfile=${secret}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      `--locale=${locale}`,
      "--no-sync",
    );
    while (program.ended === null) await pause(10);
    return program.ended;
  };
  let ended = await initialize("C.UTF-8");
  // not every system has that one
  if (ended !== "exit 0") ended = await initialize("C");
  if (ended !== "exit 0") throw new Error(`initdb failed in ${guard.folder} (${ended}):\n${heard()}`);
  rmSync(secret);
  appendFileSync(join(data, "postgresql.conf"), toConf({ ...ours(guard.folder), ...options.settings }));
  return data;
}

/** Durable, as a server is unless told otherwise: tests kill it and look for what it had promised. */
const ours = (folder: string): Settings => ({
  listen_addresses: "127.0.0.1",
  unix_socket_directories: folder,
  max_connections: 200,
  shared_buffers: "64MB",
  // in the data directory, so that it goes with it even where the server was killed
  dynamic_shared_memory_type: "mmap",
});

function toConf(settings: Settings): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name} = '${String(value).replaceAll("'", "''")}'\n`)
    .join("");
}
