import { expect, it } from "vitest";
import { createAgent, type DrivenRunner, output } from "../../../test/fixtures/dispatch/drive.ts";
import { eachEngine, type EachRecord } from "../../../test/fixtures/record/each-engine.ts";
import { executionEnded, executionStarted, recordRuns, sampleId } from "../../../test/fixtures/record/sample.ts";
import type { RunEvent } from "../../model/event.ts";
import { exportFrom } from "../audit/export.ts";

const refusal = { type: "error", code: "refused_execution" };

eachEngine("a runner may only report executions of its own attempt", (record) => {
  const forgeries: [string, (record: EachRecord) => Promise<Forgery>][] = [
    ["the end of another run's execution", async (r) => forgeEnd(await startOtherRun(r), await startOwnRun(r))],
    ["the end of an execution of a finished run", async (r) => forgeEnd(await finishOtherRun(r), await startOwnRun(r))],
    ["the end of an exec", async (r) => forgeEnd((await recordRuns(r.store, 1))[0]!, await startOwnRun(r))],
    ["the end of another run on the same runner", forgeSiblingEnd],
    ["the end of an earlier attempt's execution", forgeEarlierAttempt],
    ["an end without a start", async (r) => forgeEnd(sampleId(), await startOwnRun(r))],
    [
      "a start with the id of another run's execution",
      async (r) => forgeStart(await startOtherRun(r), await startOwnRun(r)),
    ],
    [
      "a start with the id of an exec",
      async (r) => forgeStart((await recordRuns(r.store, 1))[0]!, await startOwnRun(r)),
    ],
    ["a start with the id of its own run", async (r) => startOwnRun(r).then((own) => forgeStart(own.run_id, own))],
    ["a start with an empty id", async (r) => forgeStart("", await startOwnRun(r))],
  ];

  it.each(forgeries)("refuses %s, records that in the log and the audit, and keeps the rest", async (_, forge) => {
    const { driver, store } = record;
    const { runner, run_id, attempt, n, event, execution_id } = await forge(record);
    const before = await store.read.execution(execution_id);
    const fenced = await record.rows("select no from audit_rows where kind = 'fenced'");
    expect(await driver.append(runner, run_id, attempt, n, output("before"), event, output("after"))).toEqual({
      ok: true,
      last_n: n + 2,
    });
    expect(await store.read.execution(execution_id)).toEqual(before);
    const log = (await store.read.events(run_id, 0, 100)).slice(-3).map((stored) => stored.event);
    expect(log).toMatchObject([output("before"), refusal, output("after")]);
    const [row] = await record.rows(
      "select body, run_id from audit_rows where kind = 'fenced' and no > ?",
      fenced.length === 0 ? 0 : Number(fenced.at(-1)!["no"]),
    );
    expect(row).toMatchObject({ run_id });
    expect(JSON.parse(String(row!["body"]))).toMatchObject({
      refused: event.type,
      runner_id: runner.runner_id,
      executions: [{ execution_id }],
    });
    expect(await driver.finish(runner, run_id, attempt)).toMatchObject({ ok: true });
  });

  it("keeps one start and one end of an execution, even if all come in one report", async () => {
    const { driver, store } = record;
    const { runner, run_id, n } = await startOwnRun(record);
    const id = sampleId();
    const [start, end] = [executionStarted(id), executionEnded(id, { exit_code: 1 })];
    await driver.append(runner, run_id, 1, n, end, start, start, end, executionEnded(id, { exit_code: 0 }), start);
    expect((await store.read.events(run_id, 0, 100)).slice(-6).map(({ event }) => event.type)).toEqual([
      "error",
      "execution_started",
      "error",
      "execution_ended",
      "error",
      "error",
    ]);
    expect(await store.read.execution(id)).toMatchObject({ end: { exit_code: 1 } });
    expect(await record.rows("select no from audit_rows where execution_id = ?", id)).toHaveLength(2);
  });

  it("gives an id to the first of two runs that use it in one transaction", async () => {
    const { driver, store } = record;
    const [one, two] = [await startOwnRun(record, "one"), await startOwnRun(record, "two")];
    const id = sampleId();
    const start = executionStarted(id);
    await Promise.all([one, two].map(({ runner, run_id, n }) => driver.append(runner, run_id, 1, n, start)));
    expect(await record.rows("select run_id from audit_rows where execution_id = ?", id)).toHaveLength(1);
    const owner = (await store.read.execution(id))?.run_id;
    const other = owner === one.run_id ? two : one;
    await driver.append(other.runner, other.run_id, 1, other.n + 1, executionEnded(id));
    expect(await store.read.execution(id)).toMatchObject({ end: null });
  });

  it("refuses a forged end that comes with the finish, and still ends the run", async () => {
    const { driver, store } = record;
    const victim = await finishOtherRun(record);
    const { runner, run_id, n } = await startOwnRun(record);
    const at = record.now().toISOString();
    const events = [{ n, at, event: executionEnded(victim, { exit_code: 66 }) }];
    expect(await driver.finish(runner, run_id, 1, { events, last_n: n })).toMatchObject({ ok: true });
    expect(await store.read.execution(victim)).toMatchObject({ end: { exit_code: 0 } });
    expect(await driver.statuses(run_id)).toEqual(["completed"]);
  });

  it("does not let a runner decide in a person's name", async () => {
    const { driver, store } = record;
    const { runner, run_id, n } = await startOwnRun(record);
    const decision = { type: "permission_decision", request_id: "q", decision: "allow" } as const;
    await driver.append(runner, run_id, 1, n, { ...decision, by: "ann" }, { ...decision, by: "session" });
    expect((await store.read.events(run_id, 0, 100)).slice(-2).map(({ event }) => event)).toMatchObject([
      { type: "error", code: "refused_decision" },
      { ...decision, by: "session" },
    ]);
    expect(await record.rows("select no from audit_rows where kind = 'fenced'")).toHaveLength(1);
  });

  it("stores little of a flood of forgeries, and counts what it omits", async () => {
    const { driver, store } = record;
    const { runner, run_id, n } = await startOwnRun(record);
    const forged = Array.from({ length: 500 }, () => executionEnded(sampleId(), { signal: "x".repeat(1000) }));
    await driver.append(runner, run_id, 1, n, ...forged);
    const rows = await record.rows("select body from audit_rows where kind = 'fenced'");
    expect(rows).toHaveLength(1);
    expect(String(rows[0]!["body"]).length).toBeLessThan(100_000);
    const { executions, omitted } = JSON.parse(String(rows[0]!["body"])) as { executions: unknown[]; omitted: number };
    expect(executions.length + omitted).toBe(500);
    const lines: string[] = [];
    await exportFrom(store.engine, {}, (line) => void lines.push(line));
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([{ eventType: "refused_write", omitted }]);
  });
});

eachEngine("the audit of refused writes", (record) => {
  const readFencedRows = () => record.rows("select run_id, attempt, body from audit_rows where kind = 'fenced'");
  const at = new Date().toISOString();
  const append = (runner: DrivenRunner, run_id: string, attempt: number, ...events: RunEvent[]) => ({
    op: "append_events" as const,
    run_id,
    attempt,
    runner,
    events: events.map((event, index) => ({ n: index + 1, at, event })),
  });

  it.each([
    ["500 attempts that never existed", (n: number) => n + 2],
    ["one attempt 500 times", () => 7],
    ["attempts from the last to the first", (n: number) => 600 - n],
  ])("has one row for a run and a report with %s, and counts them", async (_, toAttempt) => {
    const { runner, run_id } = await startOwnRun(record);
    const forged = Array.from({ length: 500 }, (__, n) =>
      append(runner, run_id, toAttempt(n), executionStarted(sampleId()), output("x")),
    );
    const results = await record.store.apply(forged);
    expect(new Set(results.map((result) => "conflict" in result && result.conflict))).toEqual(new Set(["fenced"]));
    const rows = await readFencedRows();
    expect(rows).toMatchObject([{ run_id, attempt: toAttempt(0) }]);
    const body = JSON.parse(String(rows[0]!["body"])) as { executions: object[]; omitted: number };
    expect(body).toMatchObject({ refused: "append_events", writes: 500, current_attempt: 1 });
    expect(body.executions.length + body.omitted).toBe(500);
    expect(String(rows[0]!["body"]).length).toBeLessThan(100_000);
    const lines: string[] = [];
    await exportFrom(record.store.engine, {}, (line) => void lines.push(line));
    const exported = lines.map((line) => JSON.parse(line) as { eventType: string });
    expect(exported.filter(({ eventType }) => eventType === "refused_write")).toMatchObject([{ writes: 500 }]);
  });

  it("separates runs, runners and reports, and combines all kinds of writes in one report", async () => {
    const a = await startOwnRun(record);
    const b = { runner: await record.driver.register("other"), run_id: await record.driver.submit() };
    const decision = { type: "permission_decision", request_id: "q", decision: "allow", by: "ann" } as const;
    const own = { ...append(a.runner, a.run_id, 1), events: [{ n: a.n, at, event: decision as RunEvent }] };
    await record.store.apply([
      append(a.runner, a.run_id, 8, output("x")),
      append(b.runner, a.run_id, 1, output("x")),
      append(a.runner, b.run_id, 1, output("x")),
      own,
      append(a.runner, a.run_id, 9, output("x")),
    ]);
    await record.store.apply([append(a.runner, a.run_id, 8, output("x"))]);
    const bodies = (await readFencedRows()).map(({ run_id, body }) => {
      const { runner_id, refused, writes } = JSON.parse(String(body)) as Record<string, unknown>;
      return [run_id, runner_id, refused, writes];
    });
    // Different runs may come in any order.
    const sortRows = (rows: unknown[][]) => rows.map((row) => JSON.stringify(row)).toSorted();
    expect(sortRows(bodies)).toEqual(
      sortRows([
        [a.run_id, a.runner.runner_id, "append_events, permission_decision", 3],
        [a.run_id, b.runner.runner_id, "append_events", undefined],
        [b.run_id, a.runner.runner_id, "append_events", undefined],
        [a.run_id, a.runner.runner_id, "append_events", undefined],
      ]),
    );
  });
});

interface HeldRun {
  runner: DrivenRunner;
  run_id: string;
  attempt: number;
  /** Number of its next event. */
  n: number;
}

interface Forgery extends HeldRun {
  execution_id: string;
  event: RunEvent;
}

function forgeEnd(execution_id: string, own: HeldRun): Forgery {
  return { ...own, execution_id, event: executionEnded(execution_id, { exit_code: 66 }) };
}

function forgeStart(execution_id: string, own: HeldRun): Forgery {
  return { ...own, execution_id, event: executionStarted(sampleId(), { execution_id }) };
}

async function startOwnRun({ driver }: EachRecord, name = "own", agent = createAgent("echo")): Promise<HeldRun> {
  const run_id = await driver.submit({ demands: { runner_id: name } }, agent);
  const runner = await driver.register(name);
  await driver.claim(runner);
  return { runner, run_id, attempt: 1, n: 1 };
}

/** A running execution on another runner. */
async function startOtherRun(record: EachRecord, name = "other"): Promise<string> {
  const { runner, run_id } = await startOwnRun(record, name);
  const id = sampleId();
  await record.driver.append(runner, run_id, 1, 1, executionStarted(id));
  return id;
}

/** The end of another run that the same runner holds. */
async function forgeSiblingEnd(record: EachRecord): Promise<Forgery> {
  const { driver } = record;
  const [run_id, other] = [await driver.submit(), await driver.submit()];
  const runner = await driver.register("own");
  await driver.claim(runner, 2);
  const id = sampleId();
  await driver.append(runner, other, 1, 1, executionStarted(id));
  return forgeEnd(id, { runner, run_id, attempt: 1, n: 1 });
}

async function finishOtherRun(record: EachRecord): Promise<string> {
  const { runner, run_id } = await startOwnRun(record, "other");
  const id = sampleId();
  await record.driver.append(runner, run_id, 1, 1, executionStarted(id), executionEnded(id));
  await record.driver.finish(runner, run_id, 1);
  return id;
}

async function forgeEarlierAttempt(record: EachRecord): Promise<Forgery> {
  const { driver, store } = record;
  const own = await startOwnRun(record, "own", createAgent("often", { max_attempts: 3 }));
  const id = sampleId();
  await driver.append(own.runner, own.run_id, 1, 1, executionStarted(id));
  await driver.finish(own.runner, own.run_id, 1, { give_back: "at_no_cost" });
  await driver.claim(own.runner);
  expect((await store.read.run(own.run_id))?.attempt).toBe(2);
  return forgeEnd(id, { ...own, attempt: 2, n: 1 });
}
