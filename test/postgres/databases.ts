import { randomBytes } from "node:crypto";
import pg from "pg";

/** Makes an empty database with a name of its own, and returns its URL. `admin`: the URL of any other on that server. */
export async function createDatabase(admin: string): Promise<string> {
  const url = new URL(admin);
  const name = `drover_${randomBytes(8).toString("hex")}`;
  url.pathname = `/${name}`;
  // nobody can be connected to template0, which would be in the way
  await execute(admin, `create database ${name} template template0`);
  return url.href;
}

/** Ends whoever is connected to it. */
export async function dropDatabase(url: string): Promise<void> {
  const admin = new URL(url);
  const name = admin.pathname.slice(1);
  admin.pathname = "/postgres";
  await execute(admin.href, `drop database if exists ${pg.escapeIdentifier(name)} with (force)`);
}

export async function execute(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
