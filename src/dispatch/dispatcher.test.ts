import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore } from "../record/open.ts";
import { findInterruptedExecutions } from "../record/audit/interrupted-executions.ts";
import { openHost, serve, createManualClock, sampleAgent, type Host } from "../../test/fixtures/dispatch/host.ts";

const neverAborted = new AbortController().signal;
const done = { status: "completed", exit_code: 0, text: "ok" } as const;
const line = (n: number) => ({
  n,
  at: "2026-01-01T00:00:00.000Z",
  event: { type: "output", stream: "stdout", text: `${n}\n` } as const,
});

let host: Host;
const clock = createManualClock();
beforeEach(async () => {
  host = await openHost({ clock, otherProcessCheckMs: 20 });
});
afterEach(async () => {
  await host.close();
  await host.dispose();
});

let polls = 0;
const poll = (runner: { runner_id: string; epoch: number }, want = 1, signal = neverAborted) =>
  host.port.poll(
    { runner_id: runner.runner_id, epoch: runner.epoch, claim_id: `p${++polls}`, want, ack_order: 0 },
    signal,
  );
const emptyReport = (runner: { runner_id: string; epoch: number }) => ({
  runner_id: runner.runner_id,
  epoch: runner.epoch,
  held: [] as [string, number][],
  as_of_claim: null,
  events: [],
  partials: [],
  finishes: [],
});

describe("a held poll", () => {
  // Long enough that only a wake ends the poll in time.
  beforeEach(async () => {
    await host.close();
    await host.dispose();
    host = await openHost({ clock, otherProcessCheckMs: 20, leaseMs: 3_600_000, pollHoldMs: 3_600_000 });
  });

  it("is woken by a submit and returns a token for the attempt", async () => {
    const runner = await host.register();
    const waiting = poll(runner);
    const run_id = await host.submit();
    const { claims } = await waiting;
    expect(claims).toMatchObject([{ run_id, attempt: 1, attempt_token: `signed ${run_id} 1` }]);
  });

  it("is woken alone: each run wakes only one matching runner, in turn", async () => {
    const [a, b, c] = [
      await host.register({ name: "a" }),
      await host.register({ name: "b" }),
      await host.register({ name: "c", tags: ["x"], require_matching_tags: true }),
    ];
    const outcomes: string[] = [];
    const polling = [a, b, c].map(async (runner, index) => {
      const { claims } = await poll(runner);
      outcomes.push(`${"abc"[index]} ${claims.length}`);
    });
    await host.submit();
    await host.submit();
    await Promise.all(polling.slice(0, 2));
    expect(outcomes.sort()).toEqual(["a 1", "b 1"]);
    await host.submit({ demands: { tags: ["x"] } });
    await polling[2];
    expect(outcomes).toHaveLength(3);
  });

  it("is woken by a stop, a requeue, a run that may start under max_concurrent, and the end of a drain", async () => {
    const [a, b] = [await host.register({ name: "a" }), await host.register({ name: "b" })];
    const run_id = await host.submit();
    await poll(a);
    const ordered = poll(a, 0);
    await host.dispatcher.stopRuns([run_id], "ann");
    expect((await ordered).orders).toMatchObject([{ run_id, stop: "user" }]);

    const second = await host.submit();
    await poll(a);
    const requeued = poll(b);
    await host.port.report({
      ...emptyReport(a),
      held: [[second, 1]],
      finishes: [{ run_id: second, attempt: 1, last_n: 0, outcome: { status: "cancelled", by: "shutdown" } }],
    });
    expect((await requeued).claims).toMatchObject([{ run_id: second, attempt: 2 }]);

    host.agents.setFileAgents([sampleAgent({ name: "one", max_concurrent: 1 })]);
    const [first, next] = [await host.submit({ agent_name: "one" }), await host.submit({ agent_name: "one" })];
    expect((await poll(a)).claims).toMatchObject([{ run_id: first }]);
    const capped = poll(b);
    await host.port.report({
      ...emptyReport(a),
      held: [[first, 1]],
      finishes: [{ run_id: first, attempt: 1, last_n: 0, outcome: done }],
    });
    expect((await capped).claims).toMatchObject([{ run_id: next }]);

    expect(await host.dispatcher.drainRunner(b.runner_id, true)).toBe(true);
    expect(await host.dispatcher.drainRunner("nobody", true)).toBe(false);
    const drained = poll(b);
    await host.dispatcher.drainRunner(a.runner_id, true);
    const last = await host.submit({ agent_name: "one", demands: { runner_id: b.runner_id } });
    await host.port.report({
      ...emptyReport(b),
      held: [[next, 1]],
      finishes: [{ run_id: next, attempt: 1, last_n: 0, outcome: done }],
    });
    await host.dispatcher.drainRunner(b.runner_id, false);
    expect((await drained).claims).toMatchObject([{ run_id: last }]);
  });

  it("loses nothing when its runner disconnects: the same claim_id returns the same claims", async () => {
    const runner = await host.register();
    const disconnected = new AbortController();
    const request = { runner_id: runner.runner_id, epoch: runner.epoch, claim_id: "same", want: 1, ack_order: 0 };
    const lostPoll = host.port.poll(request, disconnected.signal);
    const run_id = host.submit();
    disconnected.abort();
    await lostPoll;
    const { claims } = await host.port.poll(request, neverAborted);
    expect(claims).toMatchObject([{ run_id: await run_id, attempt: 1 }]);
  });

  it("is rejected with a PortError if its runner is unknown, replaced or another owner's", async () => {
    const runner = await host.register();
    await expect(poll({ runner_id: "nobody", epoch: 1 })).rejects.toMatchObject({ conflict: "unknown_runner" });
    const old = poll(runner);
    const refused = expect(old).rejects.toMatchObject({ conflict: "old_epoch" });
    await host.register();
    await refused;
    await expect(host.register({ runner_key: "another" })).rejects.toMatchObject({ conflict: "duplicate_runner" });
    await expect(host.dispatcher.portFor("eve").report(emptyReport(await host.register()))).rejects.toMatchObject({
      conflict: "unknown_runner",
    });
  });

  it("sees runs that another process submitted to the same database", async () => {
    await host.dispatcher.start();
    const runner = await host.register();
    const waiting = poll(runner);
    // The poll has queried the store once, and waits.
    await expect
      .poll(() => host.store.connection.sql("select count(*) as claims from claims").get()?.["claims"])
      .toBe(1);
    const other = await openStore({ directory: host.store.directory, now: clock.now });
    try {
      const run_id = await serve(other, { clock }).submit();
      expect((await waiting).claims).toMatchObject([{ run_id }]);
    } finally {
      await other.close();
    }
  });

  it("returns no runs while the disk is low, and `why` reports it", async () => {
    await host.close();
    let low: string | null = "3 MB left";
    const restarted = serve(host.store, { clock, getLowDiskReason: () => low, leaseMs: 60 });
    const runner = await restarted.register();
    const run_id = await restarted.submit();
    const waiting = restarted.port.poll(
      { runner_id: runner.runner_id, epoch: runner.epoch, claim_id: "x", want: 1, ack_order: 0 },
      neverAborted,
    );
    expect(await restarted.dispatcher.why(run_id)).toEqual([{ demand: "disk", detail: "3 MB left" }]);
    low = null;
    expect((await waiting).claims).toMatchObject([{ run_id }]);
    await restarted.close();
  });
});

it("reports that a run waits because a runner with free slots is short of descriptors", async () => {
  const runner = await host.register();
  const run_id = await host.submit();
  const request = { runner_id: runner.runner_id, epoch: runner.epoch, claim_id: "short", want: 0, ack_order: 0 };
  const pollEnd = new AbortController();
  const held = host.port.poll({ ...request, shortage: "60 of 64 files are open" }, pollEnd.signal);
  const why = [{ demand: "descriptors", detail: `Runner ${runner.runner_id}: 60 of 64 files are open.` }];
  await expect.poll(() => host.dispatcher.why(run_id)).toEqual(why);
  const other = await host.register({ name: "other" });
  expect(await host.dispatcher.why(run_id)).toEqual([]);
  await host.port.deregister(other);
  pollEnd.abort();
  await held;
  expect(await host.dispatcher.why(run_id)).toEqual(why);
  expect((await host.port.poll({ ...request, want: 1 }, neverAborted)).claims).toMatchObject([{ run_id }]);
});

it("assigns 1,000 runs to 50 competing runners, each run once", async () => {
  const runners = await Promise.all(Array.from({ length: 50 }, (_, i) => host.register({ name: `r${i}` })));
  const claimedIds: string[] = [];
  const allClaimed = new AbortController();
  const polling = runners.map(async (runner) => {
    while (!allClaimed.signal.aborted) {
      const { claims } = await poll(runner, 5, allClaimed.signal);
      claimedIds.push(...claims.map(({ run_id }) => run_id));
      if (claimedIds.length >= 1000) allClaimed.abort();
    }
  });
  const ids = await Promise.all(Array.from({ length: 1000 }, () => host.submit()));
  await Promise.all(polling);
  expect(claimedIds).toHaveLength(1000);
  expect(new Set(claimedIds)).toEqual(new Set(ids));
});

it("accepts nothing from a stale attempt, and records each rejection", async () => {
  host.agents.setFileAgents([sampleAgent({ max_attempts: 100 })]);
  const [stale, fresh] = [await host.register({ name: "stale" }), await host.register({ name: "fresh" })];
  let attempt = 0;
  const run_id = await host.submit();
  const rounds = 20;
  for (let round = 0; round < rounds; round += 1) {
    const runner = await host.register({ name: "stale" });
    await poll(runner);
    attempt += 1;
    clock.advance(10_001);
    await host.port.report(emptyReport(fresh)).catch(() => null);
    await host.store.apply([{ op: "rescue", unmatched_ms: 1e9, limit: 10 }]);
    const late = {
      ...emptyReport(runner),
      held: [[run_id, attempt]] as [string, number][],
      events: [{ run_id, attempt, events: [line(1)] }],
      finishes: [{ run_id, attempt, last_n: 1, outcome: done }],
    };
    await expect(host.port.report(late)).rejects.toMatchObject({ conflict: "unknown_runner" });
    const registeredAgain = await host.register({ name: "stale" });
    expect(await host.port.report({ ...late, epoch: registeredAgain.epoch })).toMatchObject({
      acked: [],
      fenced: [{ run_id, attempt }],
    });
  }
  expect(stale.runner_id).not.toBe(fresh.runner_id);
  expect(await host.run(run_id)).toMatchObject({ status: "pending", failures: rounds, attempt: rounds });
  expect((await host.events(run_id)).every(({ event }) => event.type === "status")).toBe(true);
  const fenced = host.store.connection.sql("select count(*) as rows from audit_rows where kind = 'fenced'").get()?.[
    "rows"
  ];
  expect(fenced).toBe(2 * rounds);
  expect(await host.verify()).toMatchObject({ ok: true });
  expect(await findInterruptedExecutions(host.store)).toEqual([]);
});

it.each([
  ["budget", "budget_exceeded"],
  ["usage_limit", "provider_rate_limit"],
] as const)("parks a run that reaches its %s, or fails it with %s if its agent says so", async (why, reason) => {
  const runner = await host.register({ slots: 2 });
  const strict = sampleAgent({ name: "strict", budget: { turns: 1, when_spent: "fail" }, on_usage_limit: "fail" });
  host.agents.setFileAgents([sampleAgent(), strict]);
  const runs = [await host.submit(), await host.submit({ agent_name: "strict" })];
  const held = runs.map((run_id): [string, number] => [run_id, 1]);
  await poll(runner, 2);
  const outcome = { status: "parked", why, message: "Enough." } as const;
  const finishes = runs.map((run_id) => ({ run_id, attempt: 1, last_n: 0, outcome }));
  await host.port.report({ ...emptyReport(runner), held, finishes });
  expect(await host.run(runs[0]!)).toMatchObject({ status: "parked", parked_why: why, waiting_for: "Enough." });
  expect(await host.run(runs[1]!)).toMatchObject({ status: "failed", reason, error: "Enough." });
});

it("reaches the same state if each request is sent three times", async () => {
  const runner = await host.register();
  const sendThreeTimes = async <T>(send: () => Promise<T>): Promise<T> =>
    (await Promise.all([send(), send(), send()]))[0];
  const submitted = (await sendThreeTimes(() => host.ask({ idempotency_key: "k", parameters: { a: 1 } }))) as {
    ok: true;
    run: { run_id: string };
  };
  const id = submitted.run.run_id;
  const request = { runner_id: runner.runner_id, epoch: runner.epoch, claim_id: "one", want: 1, ack_order: 0 };
  const { claims } = await sendThreeTimes(() => host.port.poll(request, AbortSignal.timeout(60_000)));
  expect(claims).toMatchObject([{ run_id: id, attempt: 1 }]);
  const held: [string, number][] = [[id, 1]];
  const events = {
    ...emptyReport(runner),
    held,
    as_of_claim: "one",
    events: [{ run_id: id, attempt: 1, events: [line(1), line(2)] }],
  };
  const finish = {
    ...emptyReport(runner),
    held,
    as_of_claim: "one",
    finishes: [{ run_id: id, attempt: 1, last_n: 2, outcome: done }],
  };
  const shuffled = [events, finish, events, finish, events, finish];
  for (const report of shuffled) await host.port.report(report);
  await host.port.poll({ ...request, want: 1 }, AbortSignal.timeout(50));
  expect(await host.run(id)).toMatchObject({ status: "completed", attempt: 1, result_text: "ok" });
  expect(await host.seqs(id)).toEqual([1, 2, 3, 4, 5]);
  expect((await host.store.read.runs({}, { limit: 10 })).length).toBe(1);
  for (let i = 0; i < 3; i += 1) await host.port.deregister(runner);
  expect(await host.dispatcher.listRunners()).toEqual([]);
});

it("continues after a restart of the coordinator as if nothing had happened", async () => {
  const runner = await host.register();
  const run_id = await host.submit();
  await poll(runner);
  await host.close();
  clock.advance(60_000);
  const restarted = serve(host.store, { clock, rescueEveryMs: 1e9 });
  await restarted.dispatcher.start();
  const report = {
    ...emptyReport(runner),
    held: [[run_id, 1]] as [string, number][],
    events: [{ run_id, attempt: 1, events: [line(1)] }],
  };
  expect(await restarted.port.report(report)).toMatchObject({
    acked: [{ run_id, attempt: 1, n: 1 }],
    fenced: [],
    abandon: [],
  });
  clock.advance(10_001);
  // The test triggers the rescue itself: a coordinator ignores the time in which its clock jumped.
  await host.store.apply([{ op: "rescue", unmatched_ms: 1e9, limit: 10 }]);
  expect(await restarted.run(run_id)).toMatchObject({ status: "failed", reason: "runner_lost" });
  await restarted.close();
});

it("loses no runner while coordinators restart, even if each request reaches another coordinator", async () => {
  const [silent, reporting] = [await host.register({ name: "silent" }), await host.register({ name: "reporting" })];
  const run_id = await host.submit();
  await poll(silent);
  await host.close();
  for (let coordinators = 0; coordinators < 6; coordinators += 1) {
    clock.advance(4000);
    const shortLived = serve(host.store, { clock });
    await shortLived.dispatcher.start();
    await shortLived.port.report(emptyReport(reporting));
    await shortLived.close();
  }
  expect(await host.run(run_id)).toMatchObject({ status: "claimed", runner_id: silent.runner_id });
});
