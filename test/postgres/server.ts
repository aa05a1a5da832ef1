import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { createCluster, type Settings } from "./cluster.ts";
import { createDatabase } from "./databases.ts";
import { prepareEmbeddedPrograms } from "./embedded.ts";
import { openGuard } from "./guard.ts";
import { launch } from "./launch.ts";
import { findSystemPrograms } from "./programs.mjs";
import { findOrdinaryUser } from "./user.mjs";

/** A real server in a new directory. It stops when this process exits, however that happens. */
export interface PostgresServer {
  /** URL of the superuser, over TCP on 127.0.0.1. A restart does not change it. */
  url(database?: string): string;
  readonly port: number;
  readonly socketDirectory: string;
  readonly dataDirectory: string;
  /** Creates a database with a unique name and returns its URL. */
  createDatabase(): Promise<string>;
  /** Signals the server's main process. If that ends, the server ends. */
  kill(signal: NodeJS.Signals): void;
  /** Stops it first if it is running. Resolves when it accepts connections. */
  restart(): Promise<void>;
  /** Stops the server and removes everything. */
  stop(): Promise<void>;
}

export interface PostgresOptions {
  /** Settings of postgresql.conf. They override ours. */
  settings?: Settings;
  /** The directory with `initdb` and `postgres`; by default the machine's own, else the one from npm. */
  programDirectory?: string;
  /** The directory of this file, which a bundle does not know. */
  sourceDirectory?: string;
}

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const sourceDirectory = options.sourceDirectory ?? import.meta.dirname;
  const guard = await openGuard(sourceDirectory);
  try {
    const user = findOrdinaryUser();
    const programDirectory =
      options.programDirectory ??
      findSystemPrograms(user) ??
      prepareEmbeddedPrograms(sourceDirectory, user, guard.directory);
    const password = randomBytes(18).toString("base64url");
    const data = await createCluster(guard, { programDirectory, password, settings: options.settings ?? {} });
    let { program, port } = await launch(guard, { programDirectory, data });
    const url = (database = "postgres"): string => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
    return {
      url,
      port,
      socketDirectory: guard.directory,
      dataDirectory: data,
      createDatabase: () => createDatabase(url()),
      kill: guard.signal,
      async restart() {
        // It may have been suspended.
        for (const signal of ["SIGINT", "SIGCONT"] as const) guard.signal(signal);
        while (program.ended === null) await pause(10);
        ({ program } = await launch(guard, { programDirectory, data, port }));
      },
      stop: guard.end,
    };
  } catch (error) {
    await guard.end();
    throw error;
  }
}
