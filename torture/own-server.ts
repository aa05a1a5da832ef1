import { join } from "node:path";
import type { Settings } from "../test/postgres/cluster.ts";
import { dropDatabase } from "../test/postgres/databases.ts";
import { type PostgresServer, startPostgres } from "../test/postgres/server.ts";
import type { Database, Tools } from "./finding.ts";

/** Starts a real server with PostgreSQL's default durability. It stops with this process, even on a crash. */
export function startServer(root: string, settings: Settings = {}): Promise<PostgresServer> {
  return startPostgres({ sourceDirectory: join(root, "test", "postgres"), settings });
}

export async function createDatabaseOn(server: PostgresServer): Promise<Database> {
  const url = await server.createDatabase();
  return { url, drop: () => dropDatabase(url) };
}

/** Provides a private server that the torture may kill, stop and start. */
export async function withServer<T>(
  tools: Tools,
  work: (tools: Tools, server: PostgresServer) => Promise<T>,
  settings?: Settings,
): Promise<T> {
  const server = await startServer(tools.root, settings);
  try {
    const openDatabase = async (): Promise<Database> => ({
      url: await server.createDatabase(),
      // Removed with the server, which may be down.
      drop: async () => undefined,
    });
    return await work({ ...tools, engine: "postgres", openDatabase }, server);
  } finally {
    await server.stop();
  }
}
