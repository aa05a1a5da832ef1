import { randomBytes } from "node:crypto";
import pg from "pg";

/** Creates an empty database with a unique name and returns its URL. `admin` is the URL of any other database on that server. */
export async function createDatabase(admin: string): Promise<string> {
  const url = new URL(admin);
  const name = `drover_${randomBytes(8).toString("hex")}`;
  url.pathname = `/${name}`;
  // template0, because nobody can be connected to it and block the copy.
  await execute(admin, `create database ${name} template template0`);
  return url.href;
}

/** Also disconnects everybody from it. */
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
