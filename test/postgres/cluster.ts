import { appendFileSync, chownSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Guard } from "./guard.ts";
import { followLog } from "./log.ts";
import { findOrdinaryUser } from "./user.mjs";

export type Settings = Readonly<Record<string, string | number>>;

export interface ClusterOptions {
  /** The directory with `initdb`. */
  programDirectory: string;
  /** Password of the superuser `postgres`. */
  password: string;
  settings: Settings;
}

/** Creates a data directory in the guard's directory and returns its path. */
export async function createCluster(guard: Guard, options: ClusterOptions): Promise<string> {
  const data = join(guard.directory, "data");
  const secret = join(guard.directory, "password");
  writeFileSync(secret, options.password, { mode: 0o600 });
  const user = findOrdinaryUser();
  if (user) chownSync(secret, user.uid, user.gid);

  const readLog = followLog(guard);
  const initialize = async (locale: string): Promise<string> => {
    const program = guard.run(
      join(options.programDirectory, "initdb"),
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
  let end = await initialize("C.UTF-8");
  // Not every system has that locale.
  if (end !== "exit 0") end = await initialize("C");
  if (end !== "exit 0") throw new Error(`initdb failed in ${guard.directory} (${end}):\n${readLog()}`);
  rmSync(secret);
  appendFileSync(
    join(data, "postgresql.conf"),
    formatSettings({ ...getDefaultSettings(guard.directory), ...options.settings }),
  );
  return data;
}

/** Durable, as by default: tests kill the server and check what it had acknowledged. */
const getDefaultSettings = (directory: string): Settings => ({
  listen_addresses: "127.0.0.1",
  unix_socket_directories: directory,
  max_connections: 200,
  shared_buffers: "64MB",
  // In the data directory, so that it is removed with it even if the server was killed.
  dynamic_shared_memory_type: "mmap",
});

function formatSettings(settings: Settings): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name} = '${String(value).replaceAll("'", "''")}'\n`)
    .join("");
}
