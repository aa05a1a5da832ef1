import { expect, it } from "vitest";
import { createWaiters, maxWaitersPerRunner, type Waiter, type Waiters } from "./waiters.ts";

const facts = (runner_id: string, tags: string[] = []) => ({
  runner_id,
  hostname: "host",
  place_id: null,
  project_dir: "/",
  executor_profile: "p",
  executor_type: "t",
  tags,
  require_matching_tags: false,
  only_pinned: false,
});
const add = (waiters: Waiters, runner: ReturnType<typeof facts> & { only_agent?: string | null }, want: number) => {
  const waiter = waiters.add(runner.runner_id, want);
  waiter.identify(runner);
  return waiter;
};
const takeWakeCounts = (...waitersToRead: Waiter[]) => waitersToRead.map((waiter) => waiter.takeWakes().length);
const longMs = 3_600_000;
const neverAborted = new AbortController().signal;

it("wakes one waiter per run in turn, and assigns further runs to awake waiters once none is asleep", () => {
  const waiters = createWaiters();
  const [a, b, c] = [add(waiters, facts("a"), 2), add(waiters, facts("b"), 2), add(waiters, facts("c", ["x"]), 1)];
  waiters.wakeFor({});
  waiters.wakeFor({});
  expect(takeWakeCounts(a, b, c)).toEqual([1, 1, 0]);
  waiters.wakeFor({});
  waiters.wakeFor({});
  expect(takeWakeCounts(a, b, c)).toEqual([1, 0, 1]);
  waiters.wakeFor({ tags: ["x"] });
  waiters.wakeFor({ tags: ["x"] });
  expect(takeWakeCounts(a, b, c)).toEqual([0, 0, 1]);
  for (let i = 0; i < 9; i += 1) waiters.wakeFor({});
  expect(takeWakeCounts(a, b, c)).toEqual([2, 2, 1]);
});

it("wakes another waiter for runs that a removed waiter did not claim", async () => {
  const waiters = createWaiters();
  const [a, b] = [add(waiters, facts("a"), 1), add(waiters, facts("b"), 1)];
  waiters.wakeFor({});
  a.remove([]);
  expect(takeWakeCounts(b)).toEqual([1]);
  const c = add(waiters, facts("c"), 1);
  b.remove([{ demands: {}, resumed: false }]);
  await c.wait(longMs, neverAborted);
  expect(takeWakeCounts(c)).toEqual([1]);
  expect(waiters.runnerIds).toEqual(["c"]);
});

it("wakes a runner without a free slot for a resumed run if no runner has a free slot", () => {
  const waiters = createWaiters();
  const [full, drained] = [add(waiters, facts("full"), 0), add(waiters, facts("drained"), 0)];
  drained.takesResumed = false;
  waiters.wakeFor({});
  expect(takeWakeCounts(full, drained)).toEqual([0, 0]);
  waiters.wakeFor({}, true);
  expect(takeWakeCounts(full, drained)).toEqual([1, 0]);
  const free = add(waiters, facts("free"), 1);
  waiters.wakeFor({}, true);
  expect(takeWakeCounts(full, free)).toEqual([0, 1]);
});

it("does not miss a wake that arrives before it waits, and wakes up when notified", async () => {
  const waiters = createWaiters();
  const waiter = add(waiters, facts("a"), 1);
  waiters.wakeRunner("a");
  await waiter.wait(longMs, neverAborted);
  expect(takeWakeCounts(waiter)).toEqual([0]);
  waiters.wakeRunners(new Set(["b"]));
  expect(waiter.notified).toBe(false);
  waiters.wakeRunners(new Set(["b", "a"]));
  expect(waiter.notified).toBe(true);
  takeWakeCounts(waiter);
  const asleep = waiter.wait(longMs, neverAborted);
  waiters.wakeAll();
  await asleep;
  takeWakeCounts(waiter);
  const disconnected = new AbortController();
  const secondWait = waiter.wait(longMs, disconnected.signal);
  disconnected.abort();
  await secondWait;
});

it("wakes a runner with only_agent in addition to another, never instead of it", async () => {
  const waiters = createWaiters();
  const picky = add(waiters, { ...facts("picky"), only_agent: "echo" }, 1);
  const plain = add(waiters, { ...facts("plain"), only_agent: null }, 1);
  waiters.wakeFor({});
  expect(takeWakeCounts(plain)).toEqual([1]);
  // The wait ends at once, because the waiter was woken.
  await picky.wait(longMs, neverAborted);
});

it("wakes an unidentified waiter in addition to another, unless it wants no runs", async () => {
  const waiters = createWaiters();
  const [unidentified, wantsNone] = [waiters.add("unidentified", 1), waiters.add("wantsNone", 0)];
  const plain = add(waiters, facts("plain"), 1);
  waiters.wakeFor({ tags: ["x"] });
  expect([unidentified, wantsNone, plain].map(({ notified }) => notified)).toEqual([true, false, false]);
  unidentified.takeWakes();
  waiters.wakeFor({});
  expect([unidentified, wantsNone, plain].map(({ notified }) => notified)).toEqual([true, false, true]);
  expect(takeWakeCounts(unidentified, plain)).toEqual([0, 1]);
});

it("lists a runner with an expiring lease only once", () => {
  const waiters = createWaiters();
  const [a, secondOfA, b] = [add(waiters, facts("a"), 1), add(waiters, facts("a"), 0), add(waiters, facts("b"), 1)];
  expect(waiters.findLeasesEndingBefore(0)).toEqual(["a", "b"]);
  // A waiter that was just added is not identified yet, and its runner_id may belong to another runner.
  waiters.add("c", 1);
  expect(waiters.findLeasesEndingBefore(0)).toEqual(["a", "b"]);
  a.leaseEnds = secondOfA.leaseEnds = 100;
  b.leaseEnds = 200;
  expect(waiters.findLeasesEndingBefore(150)).toEqual(["a"]);
  waiters.extendLeases(["a", "gone"], 300);
  expect(waiters.findLeasesEndingBefore(150)).toEqual([]);
  expect(waiters.findLeasesEndingBefore(250)).toEqual(["b"]);
});

it("reserves a sleeping waiter once, and keeps it asleep until the claim is settled, even if its wait times out or another wake arrives", async () => {
  const waiters = createWaiters();
  const waiter = add(waiters, facts("a"), 1);
  expect(waiters.reserve({})).toBe(null);
  const offer = {
    op: "claim_runs",
    runner_id: "a",
    epoch: 1,
    claim_id: "c",
    want: 1,
    ack_order: 0,
    lease_ms: 1,
  } as const;
  waiter.offer = offer;
  expect(waiters.reserve({})).toBe(null);
  let isAwake = false;
  const waiting = waiter.wait(1, neverAborted).then(() => (isAwake = true));
  expect(waiters.reserve({ tags: ["x"] })).toBe(null);
  const reservation = waiters.reserve({});
  expect(reservation?.claim).toBe(offer);
  expect(waiters.reserve({})).toBe(null);
  const other = add(waiters, facts("b"), 1);
  // Creating the run also wakes waiters for it, although this waiter's claim already has it.
  waiters.wakeFor({});
  waiters.wakeAll();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(isAwake).toBe(false);
  expect(takeWakeCounts(other)).toEqual([0]);
  const result = { ok: true, op: "claim_runs", claims: [], orders: [], draining: false } as const;
  reservation?.settle({ ...result, claims: [], orders: [] });
  await waiting;
  expect(waiter.takeClaimed()).toEqual(result);
  expect(waiter.takeClaimed()).toBe(null);
  expect(takeWakeCounts(waiter)).toEqual([1]);
});

it("closes the oldest waiters of a runner that has too many, and wakes only open ones", async () => {
  const waiters = createWaiters();
  const unidentified = waiters.add("a", 1);
  const all = Array.from({ length: maxWaitersPerRunner + 2 }, () =>
    add(waiters, { ...facts("a"), only_agent: "x" }, 1),
  );
  const [first, second, ...openWaiters] = all;
  expect(all.map(({ isClosed }) => isClosed)).toEqual([true, true, ...openWaiters.map(() => false)]);
  expect(unidentified.isClosed).toBe(false);
  await first!.wait(longMs, neverAborted);
  await second!.wait(longMs, neverAborted);
  for (const waiter of all) waiter.takeWakes();
  waiters.wakeFor({});
  expect(all.map(({ notified }) => notified)).toEqual([false, false, ...openWaiters.map(() => true)]);
  for (const waiter of [unidentified, ...all]) waiter.remove([]);
  expect(waiters.runnerIds).toEqual([]);
});
