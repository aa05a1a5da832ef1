import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RunEvent } from "../../src/model/event.ts";
import type { OpResult, Store } from "../../src/model/store.ts";
import {
  executionEnded,
  executionStarted,
  buildFinish,
  numbered,
  sampleId,
  sampleRun,
  timeAfter,
} from "../fixtures/record/sample.ts";

export interface OpenedStore {
  store: Store;
  /** A second store on the same data, as another process would open it. */
  reopen(): Promise<Store>;
  dispose(): Promise<void>;
}

const output = (text: string): RunEvent => ({ type: "output", stream: "stdout", text });

/** What every store must do. `open` returns a new, empty one each time. */
export function storeContract(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name} keeps the store contract`, () => {
    let opened: OpenedStore;
    let store: Store;
    beforeEach(async () => {
      opened = await open();
      store = opened.store;
    });
    afterEach(() => opened.dispose());

    const create = (run = sampleRun(), ...events: RunEvent[]) =>
      store.apply([{ op: "create_run", run, events: numbered(run.run_id, 1, ...events) }]);
    const append = (run_id: string, first: number, events: RunEvent[], attempt = 1) =>
      store.apply([{ op: "append_events", run_id, attempt, events: numbered(run_id, first, ...events) }]);
    const seqs = async (run_id: string) => (await store.read.events(run_id, 0, 1000)).map(({ seq, n }) => [seq, n]);

    describe("create_run", () => {
      it("returns the run as it was given", async () => {
        const run = sampleRun({
          parameters: { message: "hi", list: [1, null, { deep: true }] },
          prompt: "do it",
          demands: { tags: ["b", "a"], hostname: "h" },
          usage: { input_tokens: 1, output_tokens: 2, cost_usd: 0.25 },
          session_id: "s",
          attended: true,
          priority: -3,
          progress: 12.5,
        });
        expect(await create(run)).toEqual([{ ok: true, last_n: 0 }]);
        expect(await store.read.run(run.run_id)).toEqual(run);
        expect(await store.read.run(sampleId())).toBeNull();
      });

      it("answers a repetition as before and refuses another run with the same id", async () => {
        const run = sampleRun({ parameters: { b: 1, a: 2 } });
        await create(run, output("one"));
        expect(await create({ ...run, parameters: { a: 2, b: 1 } }, output("one"))).toEqual([
          { ok: true, last_n: 1, repeated: true },
        ]);
        expect(await create({ ...run, agent_name: "other" })).toEqual([{ ok: false, conflict: "exists", last_n: 1 }]);
        expect(await create({ ...run, parameters: { a: 3 } })).toEqual([{ ok: false, conflict: "exists", last_n: 1 }]);
        expect(await store.read.run(run.run_id)).toEqual(run);
        expect(await seqs(run.run_id)).toEqual([[1, 1]]);
      });

      it("stores nothing if the events do not begin at 1", async () => {
        const run = sampleRun();
        const events = numbered(run.run_id, 2, output("two"));
        expect(await store.apply([{ op: "create_run", run, events }])).toEqual([
          { ok: false, conflict: "gap", last_n: 0 },
        ]);
        expect(await store.read.run(run.run_id)).toBeNull();
      });

      it("accepts neither a run in a final state nor a result event", async () => {
        await expect(create(sampleRun({ status: "failed" }))).rejects.toThrow("finish_run");
        const run = sampleRun();
        await expect(create(run, buildFinish(run.run_id).result)).rejects.toThrow("finish_run");
        expect(await store.read.run(run.run_id)).toBeNull();
      });
    });

    describe("append_events", () => {
      it("skips stored events, numbers the rest without a gap, and refuses a gap", async () => {
        const { run_id } = await created();
        expect(await append(run_id, 1, [output("1"), output("2")])).toEqual([{ ok: true, last_n: 2 }]);
        expect(await append(run_id, 1, [output("1"), output("2")])).toEqual([{ ok: true, last_n: 2, repeated: true }]);
        expect(await append(run_id, 2, [output("2"), output("3")])).toEqual([{ ok: true, last_n: 3 }]);
        expect(await append(run_id, 5, [output("5")])).toEqual([{ ok: false, conflict: "gap", last_n: 3 }]);
        const incomplete = numbered(run_id, 4, output("4"), output("5")).map((event) =>
          event.n === 5 ? { ...event, n: 6 } : event,
        );
        expect(await store.apply([{ op: "append_events", run_id, attempt: 1, events: incomplete }])).toEqual([
          { ok: false, conflict: "gap", last_n: 3 },
        ]);
        expect(await seqs(run_id)).toEqual([
          [1, 1],
          [2, 2],
          [3, 3],
        ]);
        expect((await store.read.events(run_id, 0, 10)).map(({ event }) => event)).toEqual([
          output("1"),
          output("2"),
          output("3"),
        ]);
      });

      it("refuses an unknown run, another attempt and a finished run", async () => {
        const { run_id } = await created();
        expect(await append(sampleId(), 1, [output("x")])).toEqual([{ ok: false, conflict: "not_found", last_n: 0 }]);
        expect(await append(run_id, 1, [output("x")], 2)).toEqual([{ ok: false, conflict: "fenced", last_n: 0 }]);
        await store.apply([buildFinish(run_id, numbered(run_id, 1, output("1")))]);
        expect(await append(run_id, 2, [output("2")])).toEqual([{ ok: false, conflict: "finished", last_n: 1 }]);
        expect(await append(run_id, 1, [output("1")])).toEqual([{ ok: true, last_n: 1, repeated: true }]);
        expect(await seqs(run_id)).toEqual([
          [1, 1],
          [2, null],
        ]);
      });

      it("follows the status events of the run, but never to its end", async () => {
        const { run_id } = await created({ status: "pending", started_at: null });
        await append(run_id, 1, [
          { type: "status", status: "claimed" },
          { type: "status", status: "running" },
          { type: "progress", percent: 40 },
          { type: "usage", usage: { input_tokens: 7, output_tokens: 8, cost_usd: null } },
        ]);
        expect(await store.read.run(run_id)).toMatchObject({
          status: "running",
          claimed_at: timeAfter(run_id, 0),
          started_at: timeAfter(run_id, 1),
          progress: 40,
          usage: { input_tokens: 7, output_tokens: 8, cost_usd: null },
        });
        await append(run_id, 5, [
          { type: "status", status: "waiting", reason: "approval" },
          { type: "status", status: "completed" },
        ]);
        expect(await store.read.run(run_id)).toMatchObject({ status: "waiting", waiting_for: "approval" });
        await append(run_id, 7, [{ type: "status", status: "running" }]);
        expect(await store.read.run(run_id)).toMatchObject({ status: "running", waiting_for: null });
        await append(run_id, 8, [{ type: "status", status: "completed" }]);
        expect(await store.read.run(run_id)).toMatchObject({ status: "running", finished_at: null });
        await expect(append(run_id, 9, [buildFinish(run_id).result])).rejects.toThrow("finish_run");
      });
    });

    describe("finish_run", () => {
      it("stores the last events, then the result, and the final columns", async () => {
        const { run_id } = await created({}, output("1"));
        const finish = buildFinish(run_id, numbered(run_id, 2, output("2")), {
          status: "failed",
          reason: "exit_nonzero",
          error: "no",
          exit_code: 3,
          result_text: "text",
          result_data: { a: [1] },
        });
        expect(await store.apply([finish])).toEqual([{ ok: true, last_n: 2 }]);
        expect(await store.read.run(run_id)).toMatchObject({
          status: "failed",
          reason: "exit_nonzero",
          error: "no",
          exit_code: 3,
          result_text: "text",
          result_data: { a: [1] },
          summary: "done",
          isolation: "group",
          finished_at: finish.at,
        });
        const events = await store.read.events(run_id, 0, 10);
        expect(events.map(({ seq, n, attempt }) => [seq, n, attempt])).toEqual([
          [1, 1, 1],
          [2, 2, 1],
          [3, null, 1],
        ]);
        expect(events.at(-1)?.event).toEqual(finish.result);
      });

      it("accepts the same finish again and refuses a different one", async () => {
        const { run_id } = await created();
        const finish = buildFinish(run_id, numbered(run_id, 1, output("1")), { result_data: { a: 1, b: 2 } });
        await store.apply([finish]);
        expect(await store.apply([{ ...finish, result: { ...finish.result, result_data: { b: 2, a: 1 } } }])).toEqual([
          { ok: true, last_n: 1, repeated: true },
        ]);
        for (const other of [
          buildFinish(run_id, [], { exit_code: 1 }),
          { ...finish, isolation: null },
          { ...finish, summary: "else" },
        ]) {
          expect(await store.apply([other])).toEqual([{ ok: false, conflict: "finished", last_n: 1 }]);
        }
        expect(await seqs(run_id)).toEqual([
          [1, 1],
          [2, null],
        ]);
      });

      it("refuses an unknown run, another attempt and a gap, and changes nothing", async () => {
        const { run_id } = await created();
        expect(await store.apply([buildFinish(sampleId())])).toEqual([{ ok: false, conflict: "not_found", last_n: 0 }]);
        expect(await store.apply([{ ...buildFinish(run_id), attempt: 2 }])).toEqual([
          { ok: false, conflict: "fenced", last_n: 0 },
        ]);
        expect(await store.apply([buildFinish(run_id, numbered(run_id, 2, output("2")))])).toEqual([
          { ok: false, conflict: "gap", last_n: 0 },
        ]);
        expect(await store.read.run(run_id)).toMatchObject({ status: "running", finished_at: null });
        expect(await seqs(run_id)).toEqual([]);
      });

      it("keeps the summary and the results it is not given", async () => {
        const { run_id } = await created({ summary: "so far", parameters: { a: 1 } });
        const { summary: _, ...finish } = buildFinish(run_id, [], { result_text: "out" });
        await store.apply([finish]);
        expect(await store.read.run(run_id)).toMatchObject({
          summary: "so far",
          parameters: { a: 1 },
          result_text: "out",
          result_data: null,
        });
      });
    });

    it("answers the operations of one call in order, each independently", async () => {
      const run = sampleRun();
      const { run_id } = run;
      const results = await store.apply([
        { op: "create_run", run, events: numbered(run_id, 1, output("1")) },
        { op: "append_events", run_id: sampleId(), attempt: 1, events: [] },
        { op: "append_events", run_id, attempt: 1, events: numbered(run_id, 2, output("2")) },
        buildFinish(run_id),
      ]);
      expect(results.map(({ ok }: OpResult) => ok)).toEqual([true, false, true, true]);
      expect(await seqs(run_id)).toEqual([
        [1, 1],
        [2, 2],
        [3, null],
      ]);
    });

    it("stores the calls of many at once, and a bad one affects no other", async () => {
      const runs = Array.from({ length: 50 }, () => sampleRun());
      const bad = sampleRun();
      const calls = runs.map((run) => create(run, output(run.run_id)));
      const broken = create(bad, buildFinish(bad.run_id).result);
      await expect(broken).rejects.toThrow("finish_run");
      expect((await Promise.all(calls)).every(([result]) => result.ok)).toBe(true);
      for (const run of runs) expect(await seqs(run.run_id)).toEqual([[1, 1]]);
      expect(await store.read.run(bad.run_id)).toBeNull();
    });

    it("returns all text unchanged", async () => {
      const oddTexts = [
        "",
        "a\0b",
        "\ud800",
        "x\udc00y",
        "😀",
        '"quoted"',
        "\u202e\ufeff\uffff",
        "line\r\n\ttab",
        "\\u0000",
        "'; drop table runs",
      ];
      for (const text of oddTexts) {
        const run = sampleRun({
          agent_name: text,
          parameters: { [text]: text },
          prompt: text,
          session_id: text,
          task_id: text,
          project_dir: text,
          waiting_for: text,
        });
        const { run_id } = run;
        await create(run, output(text));
        expect(await store.read.run(run_id)).toEqual(run);
        const finish = buildFinish(run_id, [], {
          status: "failed",
          error: text,
          result_text: text,
          result_data: [text],
        });
        await store.apply([{ ...finish, summary: text }]);
        expect(await store.read.run(run_id)).toMatchObject({
          error: text,
          summary: text,
          result_text: text,
          result_data: [text],
        });
        expect((await store.read.events(run_id, 0, 1))[0]?.event).toEqual(output(text));
        expect(
          (await store.read.runs({ session_id: text, agent_name: text }, { limit: 5 })).map((row) => row.run_id),
        ).toEqual([run_id]);
      }
    });

    it("lets another store on the same data see what was acknowledged", async () => {
      const { run_id } = await created({}, output("1"));
      const other = await opened.reopen();
      try {
        expect(await other.read.events(run_id, 0, 10)).toEqual(await store.read.events(run_id, 0, 10));
        await other.apply([buildFinish(run_id)]);
        expect(await store.read.run(run_id)).toMatchObject({ status: "completed" });
      } finally {
        await other.close();
      }
    });

    describe("reads", () => {
      it("lists runs newest first, by every filter, in pages", async () => {
        const runs = Array.from({ length: 9 }, (_, index) =>
          sampleRun({
            agent_name: index % 2 === 0 ? "even" : "odd",
            session_id: index < 3 ? "s" : null,
            parent_run_id: index === 4 ? "p" : null,
            task_id: index === 5 ? "t" : null,
            step_id: index === 5 ? "st" : null,
            tool_call_id: index === 6 ? "tc" : null,
            worktree_id: index === 6 ? "w" : null,
            repo_sha: index === 7 ? "sha" : null,
          }),
        );
        for (const run of runs) await create(run);
        await store.apply([
          buildFinish(runs[1]!.run_id),
          buildFinish(runs[2]!.run_id, [], { status: "failed", reason: "timeout" }),
        ]);
        const list = async (filter: Parameters<Store["read"]["runs"]>[0], page = { limit: 100 }) =>
          (await store.read.runs(filter, page)).map((row) => runs.findIndex((run) => run.run_id === row.run_id));

        expect(await list({})).toEqual([8, 7, 6, 5, 4, 3, 2, 1, 0]);
        expect(await list({ agent_name: "odd" })).toEqual([7, 5, 3, 1]);
        expect(await list({ session_id: "s" })).toEqual([2, 1, 0]);
        expect(await list({ session_id: "s", agent_name: "odd" })).toEqual([1]);
        expect(await list({ parent_run_id: "p" })).toEqual([4]);
        expect(await list({ task_id: "t", step_id: "st" })).toEqual([5]);
        expect(await list({ tool_call_id: "tc" })).toEqual([6]);
        expect(await list({ worktree_id: "w" })).toEqual([6]);
        expect(await list({ repo_sha: "sha" })).toEqual([7]);
        expect(await list({ status: ["completed"] })).toEqual([1]);
        expect(await list({ status: ["completed", "failed"] })).toEqual([2, 1]);
        expect(await list({ status: ["failed", "cancelled"] })).toEqual([2]);
        expect(await list({ status: [] })).toEqual([]);
        expect(await list({ since: runs[3]!.created_at, until: runs[6]!.created_at })).toEqual([5, 4, 3]);
        expect(await list({}, { limit: 4 })).toEqual([8, 7, 6, 5]);
        expect((await store.read.runs({}, { limit: 4, before: runs[5]!.run_id })).map((row) => row.run_id)).toEqual(
          [4, 3, 2, 1].map((index) => runs[index]!.run_id),
        );
      });

      it("leaves the long parts out of a list", async () => {
        const run = sampleRun({ parameters: { a: 1 }, prompt: "p" });
        await create(run);
        const { parameters: _1, prompt: _2, result_text: _3, result_data: _4, ...row } = run;
        expect(await store.read.runs({}, { limit: 1 })).toEqual([row]);
      });

      it("pages through a run's events and through all events in commit order", async () => {
        const one = await created({}, output("1"));
        const two = await created({}, output("2"));
        await append(one.run_id, 2, [output("3"), output("4")]);
        expect((await store.read.events(one.run_id, 1, 1)).map(({ seq }) => seq)).toEqual([2]);
        const first = await store.read.feed(0, 3);
        const rest = await store.read.feed(first.at(-1)!.cursor, 100);
        expect([...first, ...rest].map(({ run_id, seq }) => [run_id, seq])).toEqual([
          [one.run_id, 1],
          [two.run_id, 1],
          [one.run_id, 2],
          [one.run_id, 3],
        ]);
        expect(await store.read.feed(rest.at(-1)!.cursor, 100)).toEqual([]);
        expect(await store.read.last_position(one.run_id)).toBe(3);
        expect(await store.read.last_position(null)).toBe(rest.at(-1)!.cursor);
        expect(await store.read.last_position(sampleId())).toBe(0);
      });

      it("pairs the start of an execution with its end", async () => {
        const [id, other] = [sampleId(), sampleId()];
        const { run_id } = await created({}, executionStarted(id), executionStarted(other));
        const unended = (await store.read.executions({ open: true }, { limit: 10 })).map(
          ({ start }) => start.execution_id,
        );
        expect(unended).toEqual([other, id]);
        expect(await store.read.execution(id)).toMatchObject({
          run_id,
          attempt: 1,
          start: { execution_id: id },
          end: null,
        });
        await store.apply([buildFinish(run_id, numbered(run_id, 3, executionEnded(id, { exit_code: 4 })))]);
        expect(await store.read.execution(id)).toMatchObject({ end: { exit_code: 4 } });
        expect(
          (await store.read.executions({ open: true }, { limit: 10 })).map(({ start }) => start.execution_id),
        ).toEqual([other]);
        expect(
          (await store.read.executions({ open: false }, { limit: 10 })).map(({ start }) => start.execution_id),
        ).toEqual([id]);
        expect(
          (await store.read.executions({ run_id }, { limit: 10, before: other })).map(
            ({ start }) => start.execution_id,
          ),
        ).toEqual([id]);
        expect(await store.read.executions({ run_id: sampleId() }, { limit: 10 })).toEqual([]);
        expect(await store.read.execution(sampleId())).toBeNull();
      });
    });

    async function created(changes: Parameters<typeof sampleRun>[0] = {}, ...events: RunEvent[]) {
      const run = sampleRun(changes);
      expect(await create(run, ...events)).toMatchObject([{ ok: true }]);
      return run;
    }
  });
}
