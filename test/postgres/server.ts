import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { createCluster, type Settings } from "./cluster.ts";
import { createDatabase } from "./databases.ts";
import { embeddedPrograms } from "./embedded.ts";
import { openGuard } from "./guard.ts";
import { launch } from "./launch.ts";
import { findSystemPrograms } from "./programs.mjs";
import { ordinaryUser } from "./user.mjs";

/** A real server in a fresh folder. It ends when this process does, however that ends. */
export interface PostgresServer {
  /** Of the superuser, by TCP on 127.0.0.1. It stays the same over a restart. */
  url(database?: string): string;
  readonly port: number;
  readonly socketDirectory: string;
  readonly dataDirectory: string;
  /** Makes one with a name of its own and returns its URL. */
  createDatabase(): Promise<string>;
  /** Signals the server's first process, whose end is the server's. */
  kill(signal: NodeJS.Signals): void;
  /** Ends it first if it runs; resolves when it takes connections. */
  restart(): Promise<void>;
  /** Nothing of it stays. */
  stop(): Promise<void>;
}

export interface PostgresOptions {
  /** Of postgresql.conf, before ours. */
  settings?: Settings;
  /** The folder with `initdb` and `postgres`; the machine's own unless given, else the one from npm. */
  programs?: string;
  /** The folder of this file, which a bundle does not know. */
  home?: string;
}

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const home = options.home ?? import.meta.dirname;
  const guard = await openGuard(home);
  try {
    const user = ordinaryUser();
    const programs = options.programs ?? findSystemPrograms(user) ?? embeddedPrograms(home, user, guard.folder);
    const password = randomBytes(18).toString("base64url");
    const data = await createCluster(guard, { programs, password, settings: options.settings ?? {} });
    let { program, port } = await launch(guard, { programs, data });
    const url = (database = "postgres"): string => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
    return {
      url,
      port,
      socketDirectory: guard.folder,
      dataDirectory: data,
      createDatabase: () => createDatabase(url()),
      kill: guard.signal,
      async restart() {
        // it may have been stopped
        for (const signal of ["SIGINT", "SIGCONT"] as const) guard.signal(signal);
        while (program.ended === null) await pause(10);
        ({ program } = await launch(guard, { programs, data, port }));
      },
      stop: guard.end,
    };
  } catch (error) {
    await guard.end();
    throw error;
  }
}
