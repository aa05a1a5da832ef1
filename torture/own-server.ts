import { join } from "node:path";
import type { Settings } from "../test/postgres/cluster.ts";
import { dropDatabase } from "../test/postgres/databases.ts";
import { type PostgresServer, startPostgres } from "../test/postgres/server.ts";
import type { Database, Tools } from "./finding.ts";

/** A real server, durable as PostgreSQL is by itself. It ends with this process, however that ends. */
export function startServer(root: string, settings: Settings = {}): Promise<PostgresServer> {
  return startPostgres({ home: join(root, "test", "postgres"), settings });
}

export async function databaseOn(server: PostgresServer): Promise<Database> {
  const url = await server.createDatabase();
  return { url, drop: () => dropDatabase(url) };
}

/** With a server that nobody else uses: to be killed, stopped and started by the torture. */
export async function withServer<T>(
  tools: Tools,
  work: (tools: Tools, server: PostgresServer) => Promise<T>,
  settings?: Settings,
): Promise<T> {
  const server = await startServer(tools.root, settings);
  try {
    const openDatabase = async (): Promise<Database> => ({
      url: await server.createDatabase(),
      // goes with the server, which may be away
      drop: async () => undefined,
    });
    return await work({ ...tools, engine: "postgres", openDatabase }, server);
  } finally {
    await server.stop();
  }
}
