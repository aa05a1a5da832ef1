import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, expect, it } from "vitest";
import { createAgent, drive, output } from "../../test/fixtures/dispatch/drive.ts";
import { hashBytes } from "../../test/fixtures/record/files.ts";
import { emptyRecord } from "../../test/postgres/empty-record.ts";
import { findProject } from "../local.ts";
import { recordDirectory } from "../model/state-layout.ts";
import type { Store } from "../model/store.ts";
import { openStore } from "../record/open.ts";
import { openPostgresStore } from "../record/postgres/open.ts";
import { serveStateDirectory } from "./serve-state-directory.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).toReversed()) await cleanUp();
});

const openers = {
  async SQLite(state: string, now: () => Date) {
    const store = await openStore({ directory: recordDirectory(state), now, createIfMissing: true });
    return { store, variables: {} };
  },
  async PostgreSQL(_state: string, now: () => Date) {
    const secret = Buffer.alloc(32, 7);
    const { url, drop } = await emptyRecord(secret);
    cleanups.push(drop);
    const variables = { DATABASE_URL: url, DROVER_SECRET: secret.toString("hex") };
    return { store: await openPostgresStore({ url, secret, now }), variables };
  },
};

/** Records a finished run of its own session with a log and a file, and returns its id. */
async function recordRun(store: Store, name: string, now: () => Date): Promise<string> {
  const d = drive(store, now);
  const bytes = Buffer.from(name);
  const content = { sha256: hashBytes(bytes), size: bytes.length };
  const runner = await d.register(`runner of ${name}`);
  const run_id = await d.submit({ session_id: name }, createAgent("chat", { type: "autonomous", command: null }));
  await d.claim(runner);
  await store.blobs.put(Readable.from([bytes]), content, new AbortController().signal);
  await store.apply([{ op: "add_upload", run_id, attempt: 1, runner, ...content }]);
  const init = { type: "system", subtype: "init", executor_session_id: `executor session of ${name}` } as const;
  const file = { type: "file", path: "report.txt", media_type: "text/plain", ...content } as const;
  await d.append(runner, run_id, 1, 1, init, output("line"), file);
  await d.finish(runner, run_id, 1);
  await store.apply([{ op: "leave_runner", ...runner }]);
  return run_id;
}

async function describeRun({ read }: Pick<Store, "read">, run_id: string) {
  const run = (await read.run(run_id)) ?? expect.fail(`the run ${run_id} was removed`);
  return {
    status: run.status,
    log: (await read.events(run_id, 0, 100)).map(({ event }) => event.type),
    files: (await read.files(run_id)).map(({ path }) => path),
    isSessionKept: (await read.deleted_sessions([run.session_id!])).length === 0,
  };
}

const hour = 3_600_000;
const whole = {
  status: "completed",
  log: ["status", "status", "system", "output", "file", "result"],
  files: ["report.txt"],
  isSessionKept: true,
};
const removals = [
  ["events_days", { log: ["result"] }],
  ["files_days", { files: [] }],
  ["sessions_days", { isSessionKept: false }],
] as const;

it.each(
  removals.flatMap(([key, removal]) =>
    (["SQLite", "PostgreSQL"] as const).map((engine) => [key, engine, removal] as const),
  ),
)("%s in drover.yaml removes only that part of older runs, on %s", async (key, engine, removal) => {
  const cwd = mkdtempSync(join(tmpdir(), "drover-retention-"));
  cleanups.push(() => rmSync(cwd, { recursive: true, force: true }));
  writeFileSync(join(cwd, "drover.yaml"), `retention:\n  ${key}: 0.5\n`);
  const state = join(cwd, "state");
  let msAgo = 24 * hour;
  const now = () => new Date(Date.now() - msAgo);
  const { store, variables } = await openers[engine](state, now);
  const oldRun = await recordRun(store, "old", now);
  msAgo = 0;
  const recentRun = await recordRun(store, "recent", now);
  for (const run_id of [oldRun, recentRun]) expect(await describeRun(store, run_id)).toEqual(whole);
  await store.close();

  const env = { DROVER_TRUST: cwd, DROVER_STATE_DIR: state, ...variables };
  const input = { options: {}, positionals: [], rest: null, extraOptions: [], env, cwd };
  const coordinator = await serveStateDirectory(input, await findProject(env, cwd), { host: "127.0.0.1", port: 0 });
  cleanups.push(() => coordinator.stop());
  await expect.poll(() => describeRun(coordinator.store, oldRun)).toEqual({ ...whole, ...removal });
  expect(await describeRun(coordinator.store, recentRun)).toEqual(whole);
});
