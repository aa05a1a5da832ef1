import pg from "pg";
import { expect, it } from "vitest";
import { freshDatabase } from "./fresh-database.ts";

it("gives every caller its own database on one server, and drops it even if somebody is connected", async () => {
  const [one, other] = await Promise.all([freshDatabase(), freshDatabase()]);
  expect(new URL(one.url).host).toBe(new URL(other.url).host);
  expect(one.url).not.toBe(other.url);
  const client = new pg.Client({ connectionString: one.url });
  const ended = new Promise<Error>((resolve) => client.on("error", resolve));
  await client.connect();
  await one.drop();
  expect((await ended).message).toContain("terminating connection");
  await one.drop();
  const lateClient = new pg.Client({ connectionString: one.url });
  await expect(lateClient.connect()).rejects.toThrow("does not exist");
  await other.drop();
});
