import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestProject } from "vitest/node";
import { type PostgresServer, startPostgres } from "./server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The address where a test gets the URL of the run's PostgreSQL server. */
    postgres: string;
  }
}

/** Provides one PostgreSQL server for all tests of a run, started on first use: most runs need none. */
export default async function offerPostgres(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const run = project.vitest.getRootProject();
  // Every project calls this; the first call serves all of them.
  if (run.getProvidedContext().postgres !== undefined) return undefined;
  let server: Promise<PostgresServer> | undefined;
  // The path is secret, because the answer contains the superuser's password.
  const path = `/${randomBytes(16).toString("hex")}`;
  const broker = createServer((request, response) => {
    if (request.url !== path) return void response.writeHead(404).end();
    // No test is about power loss, and databases are dropped much faster this way. Vacuum would only waste time on
    // hundreds of short-lived databases.
    server ??= startPostgres({ settings: { fsync: "off", full_page_writes: "off", autovacuum: "off" } });
    server.then(
      ({ url }) => response.end(url()),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => broker.listen(0, "127.0.0.1", resolve));
  // The address of a TCP server is never a string.
  const { port } = broker.address() as AddressInfo;
  run.provide("postgres", `http://127.0.0.1:${port}${path}`);
  return async () => {
    broker.close();
    await server?.then(
      ({ stop }) => stop(),
      () => undefined, // The tests that asked got the error.
    );
  };
}
