import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { expect, it } from "vitest";
import { createAgent, type DrivenRunner } from "../../test/fixtures/dispatch/drive.ts";
import { eachEngine, type EachRecord, fromEndToEnd, captureQueries } from "../../test/fixtures/record/each-engine.ts";
import { hashBytes } from "../../test/fixtures/record/files.ts";
import { recordRuns } from "../../test/fixtures/record/sample.ts";
import type { Engine } from "./engine.ts";
import type { Query } from "./query.ts";
import { pruneDispatch } from "./retention-dispatch.ts";
import { applyRetention, type RetentionDays } from "./apply-retention.ts";
import { pruneRuns } from "./retention.ts";

const chat = createAgent("chat", { type: "autonomous", command: null });
const neverAborted = new AbortController().signal;
const minute = 60_000;

eachEngine("retention", (record) => {
  it("removes old runs that have ended with their keys, sessions and files, and nothing else", async () => {
    const { driver, store } = record;
    const runner = await driver.register("r");
    const old = await createEndedRun(record, "old", async (driven, run) => {
      await driver.save(driven, run, 1, 2, "state", { files: [{ path: "a", type: "file", bytes: randomBytes(9) }] });
    });
    const bytes = randomBytes(300_000);
    const kept = await driver.submit({ session_id: "kept" }, chat);
    await driver.claim(runner);
    await putBlob(record, bytes);
    await store.apply([
      { op: "add_upload", run_id: kept, attempt: 1, runner, sha256: hashBytes(bytes), size: bytes.length },
    ]);
    record.advance(minute);
    const before = record.now();
    // Retention keeps the run with the newest event, whatever its age. This one is now the newest.
    const recent = await createEndedRun(record, "recent");
    expect(await pruneDispatch(store, before)).toMatchObject({ runs: 1, sessions: 1 });
    expect(await store.read.run(old)).toBeNull();
    expect(await record.rows("select key from idempotency order by key")).toEqual([{ key: "key of recent" }]);
    expect(await record.rows("select session_id from sessions order by session_id")).toEqual([
      { session_id: "kept" },
      { session_id: "recent" },
    ]);
    for (const table of ["session_states", "session_files"])
      expect(await record.rows(`select session_id from ${table}`)).toEqual([]);
    expect(await driver.statuses(kept, recent)).toEqual(["claimed", "completed"]);
    expect(await buffer((await store.blobs.open(hashBytes(bytes)))!.stream)).toEqual(bytes);
  });

  it("keeps logs, files, sessions and runs each for their own time", async () => {
    const { driver, store } = record;
    const bytes = randomBytes(1000);
    const sha256 = hashBytes(bytes);
    const file = { type: "file", path: "a", size: bytes.length, sha256, media_type: "text/plain" } as const;
    await putBlob(record, bytes);
    const run_id = await createEndedRun(record, "talk", async (runner, run) => {
      const upload = { op: "add_upload", run_id: run, attempt: 1, runner, sha256, size: bytes.length } as const;
      await store.apply([upload]);
      await driver.append(runner, run, 1, 2, file);
    });
    record.advance(minute);
    const prune = (kept: keyof RetentionDays) => applyRetention(store, { [kept]: 0 });
    const readTypes = async () => (await store.read.events(run_id, 0, 100)).map(({ event }) => event.type);
    const allTypes = await readTypes();

    await prune("files_days");
    expect([await store.read.files(run_id), await readTypes()]).toEqual([[], allTypes]);
    expect(await record.rows("select 1 from files where sha256 = ?", sha256)).toEqual([]);

    await prune("events_days");
    expect(await readTypes()).toEqual(["result"]);

    await prune("sessions_days");
    expect(await store.read.deleted_sessions(["talk"])).toEqual(["talk"]);
    expect(await store.read.run(run_id)).toMatchObject({ status: "completed", session_id: "talk" });
    await recordRuns(store, 1);
    await prune("runs_days");
    expect(await store.read.run(run_id)).toBeNull();
  });

  it("keeps a session for its own time after its runs are removed, unless nothing can resume it", async () => {
    const { driver, store } = record;
    await createEndedRun(record, "talk");
    const runner = await driver.register("r");
    const procedural = await driver.submit({ session_id: "procedural" });
    await driver.claim(runner);
    await driver.finish(runner, procedural, 1);
    record.advance(minute);
    await recordRuns(store, 1);
    expect(await pruneDispatch(store, record.now(), new Date(0))).toEqual({ runs: 2, sessions: 1 });
    expect(await store.read.deleted_sessions(["talk", "procedural"])).toEqual(["procedural"]);
  });

  it("removes a run with a long log piece by piece", async () => {
    const { driver, store } = record;
    const runner = await driver.register("r");
    const run_id = await driver.submit();
    await driver.claim(runner);
    const lines = Array.from({ length: 2500 }, () => ({ type: "assistant" as const, text: "line" }));
    await driver.append(runner, run_id, 1, 1, ...lines);
    await driver.finish(runner, run_id, 1);
    record.advance(minute);
    await recordRuns(store, 1);
    expect(await pruneRuns(store, record.now())).toEqual({ runs: 1 });
    expect(await record.rows("select count(*) as count from events where run_no = 1")).toEqual([{ count: 0 }]);
  });

  it("keeps a session that a fork still needs, and refuses to delete it", async () => {
    const { driver, store } = record;
    await createEndedRun(record, "origin");
    const runner = await driver.register("r");
    const fork = await driver.submit({ session_id: "its own", mode: "fork", forked_from: "origin" }, chat);
    record.advance(minute);
    await recordRuns(store, 1);
    expect(await pruneDispatch(store, record.now())).toMatchObject({ runs: 1, sessions: 0 });
    expect(await store.apply([{ op: "delete_session", session_id: "origin" }])).toEqual([
      { ok: false, conflict: "busy" },
    ]);
    const { claims } = await driver.poll(runner, 1);
    expect(claims).toMatchObject([{ run_id: fork, invocation: { executor_session_id: "executor session of origin" } }]);
    await driver.finish(runner, fork, 1);
    record.advance(minute);
    await recordRuns(store, 1);
    expect(await pruneDispatch(store, record.now())).toMatchObject({ runs: 2, sessions: 2 });
  });

  it("scans no whole table while others wait for the lock", async () => {
    const { store } = record;
    await createEndedRun(record, "old");
    record.advance(minute);
    const before = record.now();
    await createEndedRun(record, "recent");
    const queries: Query[] = [];
    const engine: Engine = {
      ...store.engine,
      write: (work) => store.engine.write(() => captureQueries(work(), queries)),
    };
    await pruneDispatch({ ...store, engine }, before);
    expect(queries.some(({ text }) => text.includes("sessions"))).toBe(true);
    for (const { text, values } of queries)
      expect([text, await record.plan(text, ...values)]).toEqual([text, expect.not.stringMatching(fromEndToEnd)]);
  });

  it("goes through many sessions in pages, including those that stay", async () => {
    const { store } = record;
    const counted = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 2600)";
    const at = record.now().toISOString();
    await store.engine.write(function* () {
      yield {
        text: `${counted} insert into sessions (session_id, agent_name, created_by, run_count, created_at, last_used_at)
          select 's' || (10000 + i), 'a', 'ann', 1, ?1, case when i > 1200 and i < 2500 then ?1 else '2100' end from n`,
        values: [at],
        returns: "none",
      };
    });
    record.advance(minute);
    expect(await pruneDispatch(store, record.now())).toMatchObject({ runs: 0, sessions: 1299 });
    expect(await record.rows("select count(*) as count from sessions where last_used_at = '2100'")).toEqual([
      { count: 1301 },
    ]);
  });
});

async function createEndedRun(
  { driver }: EachRecord,
  name: string,
  meanwhile: (runner: DrivenRunner, run_id: string) => Promise<void> = async () => undefined,
): Promise<string> {
  const runner = await driver.register(`runner of ${name}`);
  const key = { subject: "ann", key: `key of ${name}`, fingerprint: "f" };
  const run_id = await driver.submit({ session_id: name }, chat, { idempotency: key });
  await driver.claim(runner);
  const init = { type: "system", subtype: "init", executor_session_id: `executor session of ${name}` } as const;
  await driver.append(runner, run_id, 1, 1, init);
  await meanwhile(runner, run_id);
  await driver.finish(runner, run_id, 1);
  return run_id;
}

function putBlob({ store }: EachRecord, bytes: Buffer): Promise<unknown> {
  return store.blobs.put(Readable.from([bytes]), { sha256: hashBytes(bytes), size: bytes.length }, neverAborted);
}
