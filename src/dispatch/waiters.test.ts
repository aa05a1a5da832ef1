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
const woken = (...seats: Waiter[]) => seats.map((waiter) => waiter.takeWakes().length);
const long = 3_600_000;
const never = new AbortController().signal;

it("wakes one waiter per run in turn, and gives awake waiters more once none is asleep", () => {
  const waiters = createWaiters();
  const [a, b, c] = [add(waiters, facts("a"), 2), add(waiters, facts("b"), 2), add(waiters, facts("c", ["x"]), 1)];
  waiters.wakeFor({});
  waiters.wakeFor({});
  expect(woken(a, b, c)).toEqual([1, 1, 0]);
  waiters.wakeFor({});
  waiters.wakeFor({});
  expect(woken(a, b, c)).toEqual([1, 0, 1]);
  waiters.wakeFor({ tags: ["x"] });
  waiters.wakeFor({ tags: ["x"] });
  expect(woken(a, b, c)).toEqual([0, 0, 1]);
  for (let i = 0; i < 9; i += 1) waiters.wakeFor({});
  expect(woken(a, b, c)).toEqual([2, 2, 1]);
});

it("passes on the runs that a waiter was woken for and did not serve", async () => {
  const waiters = createWaiters();
  const [a, b] = [add(waiters, facts("a"), 1), add(waiters, facts("b"), 1)];
  waiters.wakeFor({});
  a.remove([]);
  expect(woken(b)).toEqual([1]);
  const c = add(waiters, facts("c"), 1);
  b.remove([{ demands: {}, resumed: false }]);
  await c.wait(long, never);
  expect(woken(c)).toEqual([1]);
  expect(waiters.runnerIds).toEqual(["c"]);
});

it("wakes a runner without a free slot for a resumed run if no other has one", () => {
  const waiters = createWaiters();
  const [full, drained] = [add(waiters, facts("full"), 0), add(waiters, facts("drained"), 0)];
  drained.takesResumed = false;
  waiters.wakeFor({});
  expect(woken(full, drained)).toEqual([0, 0]);
  waiters.wakeFor({}, true);
  expect(woken(full, drained)).toEqual([1, 0]);
  const free = add(waiters, facts("free"), 1);
  waiters.wakeFor({}, true);
  expect(woken(full, free)).toEqual([0, 1]);
});

it("does not miss a wake from before it waits, and wakes up when notified", async () => {
  const waiters = createWaiters();
  const waiter = add(waiters, facts("a"), 1);
  waiters.wakeRunner("a");
  await waiter.wait(long, never);
  expect(woken(waiter)).toEqual([0]);
  waiters.wakeRunners(new Set(["b"]));
  expect(waiter.notified).toBe(false);
  waiters.wakeRunners(new Set(["b", "a"]));
  expect(waiter.notified).toBe(true);
  woken(waiter);
  const asleep = waiter.wait(long, never);
  waiters.wakeAll();
  await asleep;
  woken(waiter);
  const gone = new AbortController();
  const again = waiter.wait(long, gone.signal);
  gone.abort();
  await again;
});

it("wakes a runner with only_agent in addition to another, never instead of it", async () => {
  const waiters = createWaiters();
  const picky = add(waiters, { ...facts("picky"), only_agent: "echo" }, 1);
  const plain = add(waiters, { ...facts("plain"), only_agent: null }, 1);
  waiters.wakeFor({});
  expect(woken(plain)).toEqual([1]);
  // resolves at once, because it was woken
  await picky.wait(long, never);
});

it("wakes an unidentified waiter in addition to another, unless it wants no runs", async () => {
  const waiters = createWaiters();
  const [strange, wantless] = [waiters.add("strange", 1), waiters.add("wantless", 0)];
  const plain = add(waiters, facts("plain"), 1);
  waiters.wakeFor({ tags: ["x"] });
  expect([strange, wantless, plain].map(({ notified }) => notified)).toEqual([true, false, false]);
  strange.takeWakes();
  waiters.wakeFor({});
  expect([strange, wantless, plain].map(({ notified }) => notified)).toEqual([true, false, true]);
  expect(woken(strange, plain)).toEqual([0, 1]);
});

it("lists each runner whose lease ends once", () => {
  const waiters = createWaiters();
  const [a, again, b] = [add(waiters, facts("a"), 1), add(waiters, facts("a"), 0), add(waiters, facts("b"), 1)];
  expect(waiters.findLeasesEndingBefore(0)).toEqual(["a", "b"]);
  // a waiter that was just added is not identified yet, and its runner_id may be foreign
  waiters.add("c", 1);
  expect(waiters.findLeasesEndingBefore(0)).toEqual(["a", "b"]);
  a.leaseEnds = again.leaseEnds = 100;
  b.leaseEnds = 200;
  expect(waiters.findLeasesEndingBefore(150)).toEqual(["a"]);
  waiters.extendLeases(["a", "gone"], 300);
  expect(waiters.findLeasesEndingBefore(150)).toEqual([]);
  expect(waiters.findLeasesEndingBefore(250)).toEqual(["b"]);
});

it("reserves a sleeping waiter once, and lets it sleep until the claim is settled, even if its time is up or it is woken", async () => {
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
  const waiting = waiter.wait(1, never).then(() => (isAwake = true));
  expect(waiters.reserve({ tags: ["x"] })).toBe(null);
  const reservation = waiters.reserve({});
  expect(reservation?.claim).toBe(offer);
  expect(waiters.reserve({})).toBe(null);
  const other = add(waiters, facts("b"), 1);
  // The notice of the run that is claimed for it.
  waiters.wakeFor({});
  waiters.wakeAll();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(isAwake).toBe(false);
  expect(woken(other)).toEqual([0]);
  const result = { ok: true, op: "claim_runs", claims: [], orders: [], draining: false } as const;
  reservation?.settle({ ...result, claims: [], orders: [] });
  await waiting;
  expect(waiter.takeClaimed()).toEqual(result);
  expect(waiter.takeClaimed()).toBe(null);
  expect(woken(waiter)).toEqual([1]);
});

it("closes the oldest waiters of a runner that has too many, and wakes only open ones", async () => {
  const waiters = createWaiters();
  const stranger = waiters.add("a", 1);
  const all = Array.from({ length: maxWaitersPerRunner + 2 }, () =>
    add(waiters, { ...facts("a"), only_agent: "x" }, 1),
  );
  const [first, second, ...open] = all;
  expect(all.map(({ isClosed }) => isClosed)).toEqual([true, true, ...open.map(() => false)]);
  expect(stranger.isClosed).toBe(false);
  await first!.wait(long, never);
  await second!.wait(long, never);
  for (const waiter of all) waiter.takeWakes();
  waiters.wakeFor({});
  expect(all.map(({ notified }) => notified)).toEqual([false, false, ...open.map(() => true)]);
  for (const waiter of [stranger, ...all]) waiter.remove([]);
  expect(waiters.runnerIds).toEqual([]);
});
