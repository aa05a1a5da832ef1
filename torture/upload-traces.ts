import { existsSync, readdirSync, readFileSync } from "node:fs";
import pg from "pg";
import { blobsDirectory, recordDirectory } from "../src/model/state-layout.ts";
import { hashBytes } from "../test/fixtures/dispatch/claimed.ts";
import { listFiles } from "../test/fixtures/e2e/canaries.ts";
import type { Testbed } from "./testbed.ts";

/** Lists all files in the testbed, except those in the directories for uploads. */
export function listNames({ directory }: Testbed): Set<string> {
  return new Set(listFiles(directory).filter((name) => !/\/files\//.test(name)));
}

export function findOutsiders(testbed: Testbed, before: ReadonlySet<string>): string[] {
  const own = /\/(drover\.db(-wal|-shm)?|audit\.head|coordinator\.json)$/;
  return [...listNames(testbed)]
    .filter((name) => !before.has(name) && !own.test(name))
    .map((name) => `${name} was made`);
}

/** Finds remains of uploads: interrupted ones leave nothing, and ones whose coordinator died leave no complete-looking file. */
export async function listParts(testbed: Testbed): Promise<string[]> {
  if (testbed.fleet) return findWrongBlobs(testbed.fleet.url);
  const directory = blobsDirectory(recordDirectory(testbed.state));
  const files = existsSync(directory) ? listFiles(directory) : [];
  const unfinished = readdirSync(directory).filter((name) => name.length > 2);
  return files
    .filter((file) => !unfinished.some((name) => file.includes(name)))
    .filter((file) => hashBytes(readFileSync(file)) !== file.slice(file.lastIndexOf("/") + 1))
    .map((file) => `${file} is not what its name says`);
}

async function findWrongBlobs(url: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ sha256: string; size: string; upload_id: string }>(
      "select sha256, size, upload_id from drover.blobs",
    );
    const wrong: string[] = [];
    for (const { sha256, size, upload_id } of rows) {
      const parts = await client.query<{ bytes: Buffer }>(
        "select bytes from drover.blob_parts where upload_id = $1 order by part",
        [upload_id],
      );
      const bytes = Buffer.concat(parts.rows.map((part) => part.bytes));
      if (bytes.length !== Number(size) || hashBytes(bytes) !== sha256) wrong.push(`the content ${sha256} is another`);
    }
    return wrong;
  } finally {
    await client.end();
  }
}
