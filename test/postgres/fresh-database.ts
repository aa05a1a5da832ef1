import { inject } from "vitest";
import { createDatabase, dropDatabase } from "./databases.ts";

/** A test's own database on the server that all tests of a run share. */
export interface FreshDatabase {
  url: string;
  /** Also disconnects everybody from it. */
  drop(): Promise<void>;
}

export async function freshDatabase(): Promise<FreshDatabase> {
  const response = await fetch(inject("postgres"));
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  const url = await createDatabase(text);
  return { url, drop: () => dropDatabase(url) };
}
