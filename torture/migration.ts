import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { auditKeyFile, recordDirectory } from "../src/model/state-layout.ts";
import { readKey } from "../src/record/audit/key.ts";
import { openStore } from "../src/record/open.ts";
import { openPostgresStore } from "../src/record/postgres/open.ts";
import type { RecordStore } from "../src/record/record-store.ts";
import { fillRecord } from "../test/fixtures/record/fill.ts";
import { type Differences, findDifferences } from "./compare-stores.ts";
import { drover, type CommandResult } from "./drover-command.ts";
import type { Finding, Tools } from "./finding.ts";
import { createProcesses } from "./processes.ts";

/** Memory limit, independent of the record's size. */
const maxMegabytes = 400;

/**
 * Moves a state directory's record to PostgreSQL with `drover migrate`. Runs, events, sessions and files read the same
 * before and after, the chain verifies with the same head, and new runs can be added.
 */
export async function migration({ runs }: { runs: number }, tools: Tools): Promise<Finding> {
  const directory = mkdtempSync(join(tmpdir(), "drover-torture-"));
  const processes = createProcesses();
  const database = await tools.openDatabase();
  try {
    const state = join(directory, "state");
    const record = recordDirectory(state);
    const startedAt = performance.now();
    await fill(record, runs, tools);
    const [fleet, here] = [{ DATABASE_URL: database.url, DROVER_SECRET_FILE: auditKeyFile(record) }, {}];
    const command = (env: Record<string, string>, ...args: string[]): Promise<CommandResult> =>
      drover({ processes, tools, cwd: directory }, { DROVER_STATE_DIR: state, ...env }, ...args);
    tools.progress(`${runs} runs recorded in ${Math.round((performance.now() - startedAt) / 1000)} s`);
    const migrated = await command(here, "migrate", "--to", database.url);
    const seconds = Math.round(migrated.ms / 1000);
    const head = /^head (.+)$/m.exec(migrated.output)?.[1] ?? "";
    if (migrated.code !== 0) return { seen: { runs }, broken: [`migrate: ${migrated.output}`], late: [] };
    tools.progress(`moved in ${seconds} s; ${migrated.output.split("\n")[0]}`);
    const verified = [await command(here, "audit", "verify"), await command(fleet, "audit", "verify", "--head", head)];
    const found = await compareAndContinue(record, database.url, tools);
    verified.push(await command(fleet, "audit", "verify", "--head", head));
    const { differences, examples, ...seen } = found;
    return {
      seen: {
        ...seen,
        "seen otherwise after it": differences,
        "seconds to move": seconds,
        "MB, at most": migrated.megabytes,
      },
      broken: [
        ...examples,
        ...verified
          .filter(({ code, output: said }) => code !== 0 || !said.includes("is intact"))
          .map(({ output: said }) => said),
        ...(verified[0]?.output.includes(head) ? [] : ["the head is another one after it"]),
      ],
      late: migrated.megabytes > maxMegabytes ? [`it took ${migrated.megabytes} MB of memory`] : [],
    };
  } finally {
    await processes.endAll();
    await database.drop();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function fill(directory: string, runs: number, tools: Tools): Promise<void> {
  const store = await openStore({ directory, now: () => new Date(), createIfMissing: true });
  const onProgress = (done: number): void => {
    if (done % 20_000 === 0) tools.progress(`${done} of ${runs} runs recorded`);
  };
  await fillRecord(store, { runs, onProgress });
  await store.close();
}

async function compareAndContinue(directory: string, url: string, tools: Tools): Promise<Differences> {
  const before = await openStore({ directory, now: () => new Date(), mode: "read" });
  const after: RecordStore = await openPostgresStore({ url, secret: readKey(directory) ?? new Uint8Array() });
  try {
    const found = await findDifferences(before, after, tools.progress);
    await fillRecord(after, { runs: 200 });
    return found;
  } finally {
    await before.close();
    await after.close();
  }
}
