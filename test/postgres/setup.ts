import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestProject } from "vitest/node";
import { type PostgresServer, startPostgres } from "./server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Where a test is told the URL of the run's PostgreSQL server. */
    postgres: string;
  }
}

/** One PostgreSQL server for all tests of a run, started when the first of them asks for it: most runs need none. */
export default async function offerPostgres(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const run = project.vitest.getRootProject();
  // every project calls this; the first one's is for all of them
  if (run.getProvidedContext().postgres !== undefined) return undefined;
  let server: Promise<PostgresServer> | undefined;
  // the answer has the superuser's password in it
  const path = `/${randomBytes(16).toString("hex")}`;
  const desk = createServer((request, response) => {
    if (request.url !== path) return void response.writeHead(404).end();
    // None of these tests is about a machine that loses power, and databases are dropped much faster so. Vacuum would
    // look after hundreds of small databases, none of which lives for long.
    server ??= startPostgres({ settings: { fsync: "off", full_page_writes: "off", autovacuum: "off" } });
    server.then(
      ({ url }) => response.end(url()),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => desk.listen(0, "127.0.0.1", resolve));
  // a TCP server's address is never a string
  const { port } = desk.address() as AddressInfo;
  run.provide("postgres", `http://127.0.0.1:${port}${path}`);
  return async () => {
    desk.close();
    await server?.then(
      ({ stop }) => stop(),
      () => undefined, // those who asked were told
    );
  };
}
