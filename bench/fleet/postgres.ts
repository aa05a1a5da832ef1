import { readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { type PostgresServer, startPostgres } from "../../test/postgres/server.ts";
import { readTreeCpuMs } from "../dispatch/processes.ts";

export interface Server {
  /** The server's version and durability settings. */
  about: string;
  createDatabase(): Promise<string>;
  /** CPU time of all its processes. */
  cpuMs(): number;
  stop(): Promise<void>;
}

/** The same for all sides, with enough room that no checkpoint falls into a measurement. */
const settings = { shared_buffers: "256MB", max_wal_size: "8GB", checkpoint_timeout: "30min" };

/** Starts a private PostgreSQL with default durability. Throws if none is available. */
export async function startServer(root: string): Promise<Server> {
  const server: PostgresServer = await startPostgres({ settings, sourceDirectory: join(root, "test", "postgres") });
  const pid = Number(readFileSync(join(server.dataDirectory, "postmaster.pid"), "utf8").split("\n")[0]);
  return {
    about: await describe(server.url()),
    createDatabase: server.createDatabase,
    cpuMs: () => readTreeCpuMs(pid),
    stop: server.stop,
  };
}

async function describe(connectionString: string): Promise<string> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  const names = ["fsync", "synchronous_commit", "full_page_writes", "wal_sync_method"];
  const { rows } = await client.query<{ version: string; settings: string[] }>(
    `select current_setting('server_version') as version,
       array(select name || ' ' || current_setting(name) from unnest($1::text[]) name) as settings`,
    [names],
  );
  await client.end();
  return `PostgreSQL ${rows[0]?.version}: ${rows[0]?.settings.join(", ")}`;
}
