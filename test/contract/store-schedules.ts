import { describe, expect, it } from "vitest";
import { scheduleDefinitionSchema, type NewSchedule, type ScheduleDefinition } from "../../src/model/schedule.ts";
import type { FireSchedule } from "../../src/model/schedule-ops.ts";
import type { Change } from "../../src/model/store.ts";
import { createAgent } from "../fixtures/dispatch/drive.ts";
import { buildFinish, sampleRun } from "../fixtures/record/sample.ts";
import { eachWithStore, type OpenedForDispatch } from "./each-with-store.ts";

const minute = (n: number): string => new Date(Date.UTC(2026, 0, 1, 0, n)).toISOString();
const agent = createAgent("echo");

/** What every store must do about schedules and their slots. */
export function storeScheduleContract(engine: string, open: () => Promise<OpenedForDispatch>): void {
  describe(`${engine} keeps the schedule contract`, () => {
    const { store, driver } = eachWithStore(open);
    const scheduled = (schedule_id = "s", changes: Partial<ScheduleDefinition> = {}): NewSchedule => ({
      schedule_id,
      agent_name: "echo",
      created_by: "ann",
      source: "api",
      definition: scheduleDefinitionSchema.parse({ name: schedule_id, cron: "* * * * *", ...changes }),
      anchor: minute(0),
      due_at: minute(1),
    });
    const put = async (schedule: NewSchedule, rev?: number, enabled = true) =>
      (await store.apply([{ op: "put_schedule", schedule: { ...schedule, enabled }, ...(rev ? { rev } : {}) }]))[0];
    const newRun = (changes: Partial<Parameters<typeof sampleRun>[0]> = {}): NonNullable<FireSchedule["run"]> => {
      const pending = { status: "pending", attempt: 0, agent_name: "echo", started_at: null } as const;
      const run = sampleRun({ ...pending, trigger_type: "schedule", schedule: "s", ...changes });
      return { slot: minute(1), create: { op: "create_run", run, events: [], agent } };
    };
    const fire = async (at: number, changes: Partial<FireSchedule> = {}) => {
      const run = newRun();
      const due = { rev: 1, at: minute(at), next: minute(at + 1) };
      const op: FireSchedule = { op: "fire_schedule", schedule_id: "s", due, skipped: [], at: minute(at), ...changes };
      return (await store.apply([{ ...op, run: { ...(changes.run ?? run), slot: minute(at) } }]))[0];
    };
    const fired = async (at: number): Promise<string> => {
      const result = await fire(at);
      if (!result.ok || result.run_id === null) throw new Error(JSON.stringify(result));
      return result.run_id;
    };
    const lines = async () => (await store.read.slots("s", { limit: 100 })).toReversed();

    it("stores a schedule unchanged, and finds it by its next slot", async () => {
      expect(await put(scheduled())).toEqual({ ok: true, op: "put_schedule" });
      const stored = await store.read.schedule("s");
      expect(stored).toMatchObject({ ...scheduled(), enabled: true, rev: 1, last_run_id: null, last: null });
      expect(await store.read.due_schedules(minute(0), 10)).toEqual({ due: [], next: minute(1) });
      expect((await store.read.due_schedules(minute(1), 10)).due).toMatchObject([{ schedule_id: "s" }]);
      expect(await store.read.schedules({ created_by: "bob" }, { limit: 10 })).toEqual([]);
      expect(await store.read.schedules({ created_by: "ann", agent_name: "echo" }, { limit: 10 })).toHaveLength(1);
      expect(await store.read.schedules({}, { limit: 10, after: "s" })).toEqual([]);
    });

    it("refuses a name that its owner already uses for the agent, and an update of an outdated revision", async () => {
      await put(scheduled("s"));
      expect(await put(scheduled("t", { name: "s" }))).toEqual({ ok: false, conflict: "name_taken" });
      expect(await put({ ...scheduled("t", { name: "s" }), created_by: "bob" })).toMatchObject({ ok: true });
      expect(await put(scheduled("s", { prompt: "a" }), 1)).toMatchObject({ ok: true });
      expect(await put(scheduled("s", { prompt: "b" }), 1)).toEqual({ ok: false, conflict: "changed" });
      expect(await put(scheduled("u"), 1)).toEqual({ ok: false, conflict: "not_found" });
      expect(await store.read.schedule("s")).toMatchObject({ rev: 2, definition: { prompt: "a" } });
    });

    it("starts the run of a slot once: run, slot row and next slot are stored together", async () => {
      await put(scheduled());
      const run_id = await fired(1);
      expect(await fire(1)).toEqual({ ok: false, conflict: "changed" });
      expect(await lines()).toMatchObject([
        { slot: minute(1), outcome: "fired", run_id, run_status: "pending", manual: false },
      ]);
      expect(await store.read.run(run_id)).toMatchObject({
        trigger_type: "schedule",
        schedule: "s",
        status: "pending",
      });
      expect(await store.read.schedule("s")).toMatchObject({
        due_at: minute(2),
        last_run_id: run_id,
        last: { run_id },
      });
      expect(await store.read.runs({}, { limit: 10 })).toHaveLength(1);
    });

    it("never decides a slot twice, even if the schedule was restored or created again", async () => {
      await put(scheduled("s", { overlap: "allow" }));
      const run_id = await fired(1);
      await put(scheduled("s", { overlap: "allow", timezone: "Etc/UTC" }), 1);
      const oldDefinition = { rev: 2, at: minute(1), next: minute(2) };
      expect(await fire(1, { due: oldDefinition })).toMatchObject({ ok: true, run_id: null, settled: 0 });
      await store.apply([{ op: "delete_schedule", schedule_id: "s" }]);
      await put(scheduled("s", { overlap: "allow" }));
      expect(await fire(1)).toMatchObject({ ok: true, run_id: null, settled: 0 });
      expect(await lines()).toMatchObject([{ slot: minute(1), run_id }]);
      expect(await store.read.runs({}, { limit: 10 })).toHaveLength(1);
    });

    it("keeps the next slot if a change does not affect the timing", async () => {
      await put(scheduled());
      await fired(1);
      await put(scheduled("s", { prompt: "new" }), 1);
      expect(await store.read.schedule("s")).toMatchObject({ due_at: minute(2), rev: 2 });
      await put({ ...scheduled("s", { cron: "5 * * * *" }), due_at: minute(5) }, 2);
      expect(await store.read.schedule("s")).toMatchObject({ due_at: minute(5), rev: 3 });
    });

    it("starts no run of a schedule that was changed or deleted since it was read", async () => {
      await put(scheduled());
      await put(scheduled("s", { prompt: "new" }), 1);
      expect(await fire(1)).toEqual({ ok: false, conflict: "changed" });
      await store.apply([{ op: "delete_schedule", schedule_id: "s" }]);
      expect(await fire(1)).toEqual({ ok: false, conflict: "not_found" });
      expect(await store.read.runs({}, { limit: 10 })).toEqual([]);
      expect(await lines()).toEqual([]);
    });

    it("writes a row for each skipped slot, however many", async () => {
      await put(scheduled());
      const missed = Array.from(
        { length: 250 },
        (_, index) => ({ slot: minute(index + 1), why: "missed", detail: "x" }) as const,
      );
      const due = { rev: 1, at: minute(1), next: minute(252) };
      const [fireResult] = await store.apply([
        {
          op: "fire_schedule",
          schedule_id: "s",
          due,
          skipped: missed,
          at: minute(251),
          run: { ...newRun(), slot: minute(251) },
        },
      ]);
      expect(fireResult).toMatchObject({ ok: true, settled: 251 });
      const page = await store.read.slots("s", { limit: 2, before: minute(251) });
      expect(page).toMatchObject([
        { slot: minute(250), outcome: "skipped", why: "missed", run_id: null },
        { slot: minute(249) },
      ]);
    });

    it("skips a slot while the last run has not ended", async () => {
      await put(scheduled("s", { overlap: "skip" }));
      const run_id = await fired(1);
      expect(await fire(2)).toMatchObject({ ok: true, run_id: null, settled: 1 });
      await store.apply([{ op: "stop_runs", run_ids: [run_id], reason: "user", by: "ann" }]);
      expect(await fire(3)).toMatchObject({ run_id: expect.any(String) });
      expect(await lines()).toMatchObject([
        { outcome: "fired", run_status: "cancelled" },
        { outcome: "skipped", why: "overlap", detail: `Run ${run_id} is pending.`, run_id: null },
        { outcome: "fired" },
      ]);
    });

    it("queues a slot behind the last run, in order, and explains why it waits", async () => {
      await put(scheduled("s", { overlap: "queue" }));
      const runner = await driver.register("r");
      const [one, two, three] = [await fired(1), await fired(2), await fired(3)];
      expect(await driver.claim(runner, 4)).toEqual([one]);
      expect(await store.read.why(two)).toMatchObject([{ demand: "schedule", detail: expect.stringContaining(one) }]);
      await driver.finish(runner, one, 1);
      expect(await driver.claim(runner, 4)).toEqual([two]);
      await driver.finish(runner, two, 1);
      expect(await driver.claim(runner, 4)).toEqual([three]);
    });

    it("keeps the rest of a queue waiting when a queued run is stopped", async () => {
      await put(scheduled("s", { overlap: "queue" }));
      const runner = await driver.register("r");
      const [one, two, three] = [await fired(1), await fired(2), await fired(3)];
      expect(await driver.claim(runner, 4)).toEqual([one]);
      await store.apply([{ op: "stop_runs", run_ids: [two], reason: "user", by: "ann" }]);
      expect(await driver.claim(runner, 4)).toEqual([]);
      expect(await store.read.why(three)).toMatchObject([{ demand: "schedule", detail: expect.stringContaining(one) }]);
      await driver.finish(runner, one, 1);
      expect(await driver.claim(runner, 4)).toEqual([three]);
    });

    it("queues no more than a hundred", async () => {
      await put(scheduled("s", { overlap: "queue" }));
      for (let index = 1; index <= 101; index += 1) await fired(index);
      expect(await fire(102)).toMatchObject({ run_id: null });
      expect((await lines()).at(-1)).toMatchObject({ outcome: "skipped", why: "queue_full" });
    });

    it("stops the last run for the next one, which waits until it has ended", async () => {
      await put(scheduled("s", { overlap: "cancel_previous" }));
      const runner = await driver.register("r");
      const one = await fired(1);
      expect(await driver.claim(runner, 4)).toEqual([one]);
      const two = await fired(2);
      expect(await driver.statuses(one, two)).toEqual(["stopping", "pending"]);
      expect(await driver.claim(runner, 4)).toEqual([]);
      // It waits itself, so it is cancelled at once.
      const three = await fired(3);
      expect(await driver.statuses(one, two, three)).toEqual(["stopping", "cancelled", "pending"]);
      const cancelled = { ...buildFinish(one).result, status: "cancelled" } as const;
      await driver.finish(runner, one, 1, { result: cancelled });
      expect(await driver.claim(runner, 4)).toEqual([three]);
    });

    it("runs beside the last run if that is allowed", async () => {
      await put(scheduled("s", { overlap: "allow" }));
      const runner = await driver.register("r");
      const runs = [await fired(1), await fired(2)];
      expect(await driver.claim(runner, 4)).toEqual(runs);
    });

    it("runs what a person requests whatever the policy says, with its own row", async () => {
      await put(scheduled());
      await fired(1);
      const now = "2026-01-01T00:01:30.000Z";
      const ask = { op: "fire_schedule", schedule_id: "s", skipped: [], at: now } as const;
      const [requested] = await store.apply([{ ...ask, run: { ...newRun(), slot: now } }]);
      expect(requested).toMatchObject({ ok: true, run_id: expect.any(String) });
      expect(await store.read.schedule("s")).toMatchObject({ due_at: minute(2), last: { manual: true } });
      expect(await store.apply([{ ...ask, run: { ...newRun(), slot: now } }])).toMatchObject([{ run_id: null }]);
    });

    it("stores nothing if the session to continue no longer exists", async () => {
      await put(scheduled());
      const run = newRun({ mode: "resume", session_id: "gone" });
      expect(await fire(1, { run, skipped: [{ slot: minute(0), why: "missed", detail: null }] })).toEqual({
        ok: false,
        conflict: "session",
      });
      expect(await lines()).toEqual([]);
      expect(await store.read.schedule("s")).toMatchObject({ due_at: minute(1) });
    });

    it("notifies listeners that schedules have changed", async () => {
      const changes: Change[] = [];
      const stop = store.changes((change) => changes.push(change));
      await put(scheduled());
      await fired(1);
      await store.apply([{ op: "delete_schedule", schedule_id: "s" }]);
      stop();
      expect(changes.filter(({ schedules }) => schedules)).toHaveLength(3);
    });

    describe("schedules of agents", () => {
      const fromFile = (name: string, changes: Partial<ScheduleDefinition> = {}, agent_name = "echo"): NewSchedule => ({
        ...scheduled(`${agent_name}/${name}`, { ...changes, name }),
        agent_name,
        source: "file",
      });
      const sync = async (agents: readonly string[] | null, ...schedules: NewSchedule[]) =>
        (await store.apply([{ op: "sync_schedules", source: "file", agents, schedules }]))[0];
      const ids = async () => (await store.read.schedules({}, { limit: 100 })).map(({ schedule_id }) => schedule_id);

      it("follow their agents: added, changed, removed", async () => {
        await put(scheduled());
        expect(await sync(["echo"], fromFile("a"), fromFile("b"))).toMatchObject({ changed: 2 });
        expect(await sync(["echo"], fromFile("a"), fromFile("b"))).toMatchObject({ changed: 0 });
        expect(await sync(["other"], fromFile("a", {}, "other"))).toMatchObject({ changed: 1 });
        expect(await sync(["echo"], fromFile("b", { prompt: "x" }))).toMatchObject({ changed: 2 });
        expect(await ids()).toEqual(["echo/b", "other/a", "s"]);
        expect(await sync(null, fromFile("b", { prompt: "x" }))).toMatchObject({ changed: 1 });
        expect(await ids()).toEqual(["echo/b", "s"]);
      });

      it("keep their timing and what people changed, unless the definition says otherwise", async () => {
        await sync(["echo"], fromFile("a"));
        const scheduleBefore = await store.read.schedule("echo/a");
        await put({ ...fromFile("a") }, scheduleBefore?.rev, false);
        await sync(["echo"], { ...fromFile("a", { prompt: "x" }), due_at: minute(5), anchor: minute(4) });
        expect(await store.read.schedule("echo/a")).toMatchObject({
          enabled: false,
          due_at: minute(1),
          anchor: minute(0),
        });
        await sync(["echo"], { ...fromFile("a", { cron: "5 * * * *", enabled: false }), due_at: minute(5) });
        expect(await store.read.schedule("echo/a")).toMatchObject({ enabled: false, due_at: minute(5) });
        await sync(["echo"], fromFile("a", { cron: "5 * * * *", enabled: true }));
        expect(await store.read.schedule("echo/a")).toMatchObject({ enabled: true });
      });
    });
  });
}
