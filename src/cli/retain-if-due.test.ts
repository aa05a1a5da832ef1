import { mkdtempSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { recordDirectory, retentionStampFile } from "../model/state-layout.ts";
import { execOnRecord } from "../execute/exec.ts";
import { type Project, createLocalIds } from "../local.ts";
import { defaultConfig } from "../model/config.ts";
import { noCorrelation } from "../model/new-run.ts";
import { getCurrentOwner } from "../record/audit/owner.ts";
import { verifyAudit } from "../record/audit/verify.ts";
import { openStore, type SqliteStore } from "../record/open.ts";
import { createRedactor } from "../redact/redactor.ts";
import { retainIfDue } from "./retain-if-due.ts";

const day = 86_400_000;
let directory: string;
let store: SqliteStore;
let clock: Date;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "drover-retain-"));
  clock = new Date();
  store = await openStore({ directory: recordDirectory(directory), now: () => clock, createIfMissing: true });
});
afterEach(async () => {
  await store.close();
  rmSync(directory, { recursive: true });
});

/** Records an exec at this time and returns its run id. */
async function exec(at: Date): Promise<string> {
  clock = at;
  const { runId } = await execOnRecord(
    {
      command: { executable: "/bin/true", workingDirectory: "/" },
      display: "true",
      options: { isolation: "none", stdin: "none" },
      capture: { mode: "both", maxBytes: 1024, onLimit: "truncate" },
      spillDirectory: null,
      parentRunId: null,
      correlation: noCorrelation,
    },
    {
      store,
      redactor: createRedactor({ variables: {} }),
      now: () => clock,
      newId: createLocalIds(),
      owner: getCurrentOwner(),
      createdBy: "test",
    },
    new AbortController().signal,
  );
  return runId;
}

it("deletes expired records at most once a day, and leaves an audit chain that verifies", async () => {
  const project: Project = {
    locations: { stateDirectory: directory, configFile: null, repository: null },
    config: { ...defaultConfig, retention: { ...defaultConfig.retention, runs_days: 1e-9 } },
    trusted: false,
    ignoredKeys: [],
  };
  const now = new Date();
  const stamp = retentionStampFile(recordDirectory(directory));
  await retainIfDue(store, project, new Date(now.getTime() - 2 * day));
  const oldId = await exec(new Date(now.getTime() - 40 * day));
  const recentId = await exec(now);
  utimesSync(stamp, now, now);
  await retainIfDue(store, project, now);
  expect(await store.read.run(oldId)).not.toBeNull();
  utimesSync(stamp, new Date(now.getTime() - 2 * day), new Date(now.getTime() - 2 * day));
  clock = new Date(now.getTime() + day);
  await retainIfDue(store, project, now);
  expect(await store.read.run(oldId)).toBeNull();
  expect(await store.read.run(recentId)).not.toBeNull();
  expect(await verifyAudit({ directory: recordDirectory(directory) })).toMatchObject({ ok: true, pruned: { rows: 2 } });
});
