import { afterEach, beforeEach, expect, it } from "vitest";
import { openHost, standingClock, type Host } from "../../test/fixtures/dispatch/host.ts";
import type { PollRequest, RegistrationResult } from "../model/runner-port.ts";
import { createPoll, type PollDeps } from "./poll.ts";
import { createWaiters, maxWaitersPerRunner, type Waiters } from "./waiters.ts";

const never = new AbortController().signal;
const leaseMs = 10_000;
const clock = standingClock();
let host: Host;
let waiters: Waiters;
let runner: RegistrationResult;
let request: PollRequest;
beforeEach(async () => {
  host = await openHost({ clock, leaseMs });
  waiters = createWaiters();
  host.store.changes(({ claimable }) => {
    for (const demands of claimable) waiters.wakeFor(demands);
  });
  runner = await host.register();
  request = { runner_id: runner.runner_id, epoch: runner.epoch, claim_id: "same", want: 1, ack_order: 0 };
});
afterEach(async () => {
  await host.close();
  await host.dispose();
});

const openPoll = (changes: Partial<PollDeps> = {}) =>
  createPoll({
    store: host.store,
    waiters,
    leaseMs,
    // reached only if a wake was lost
    pollHoldMs: 15_000,
    maxPollHoldMs: 3_600_000,
    getLowDiskReason: () => null,
    shortages: new Map(),
    signAttempt: () => "",
    storeNow: () => clock.now().getTime(),
    stopSignal: new AbortController().signal,
    ...changes,
  });

/** Counts the rows written since the store was opened. */
const written = () => Number(host.store.connection.sql("select total_changes() as rows").get()?.["rows"]);
const leaseLeft = async () => {
  const poller = await host.store.read.poller(request);
  return "conflict" in poller ? null : poller.lease_until - clock.now().getTime();
};
const nothing = { claims: [], orders: [] };
const identified = () => waiters.findLeasesEndingBefore(Number.POSITIVE_INFINITY);

it("stores a claim_id once and writes nothing for later polls with it", async () => {
  const poll = openPoll({ pollHoldMs: 1 });
  const before = written();
  expect(await poll(request, never)).toEqual(nothing);
  const since = written();
  expect(since).toBeGreaterThan(before);
  for (let i = 0; i < 3; i += 1) expect(await poll(request, never)).toEqual(nothing);
  expect(written()).toBe(since);
  await poll({ ...request, claim_id: "another" }, never);
  expect(written()).toBeGreaterThan(since);
  const run_id = await host.submit();
  expect((await poll({ ...request, claim_id: "another" }, never)).claims).toMatchObject([{ run_id }]);
});

it("misses no run that arrives while it queries the store", async () => {
  await openPoll({ pollHoldMs: 1 })(request, never);
  let run_id = "";
  const poll = openPoll({
    store: {
      apply: (ops) => host.store.apply(ops),
      read: {
        ...host.store.read,
        async poller(poller) {
          const found = await host.store.read.poller(poller);
          run_id = await host.submit();
          return found;
        },
      },
    },
  });
  expect((await poll(request, never)).claims).toMatchObject([{ run_id }]);
});

it("renews the lease at once if little of it is left or the remaining time is unknown", async () => {
  await openPoll({ pollHoldMs: 1 })(request, never);
  clock.advance(4000);
  await openPoll({ pollHoldMs: 1 })(request, never);
  expect(await leaseLeft()).toBe(6000);
  clock.advance(1001);
  await openPoll({ pollHoldMs: 1 })(request, never);
  expect(await leaseLeft()).toBe(leaseMs);
  clock.advance(1000);
  await openPoll({ pollHoldMs: 1, storeNow: () => null })(request, never);
  expect(await leaseLeft()).toBe(leaseMs);
});

it("knows when the lease of a waiting runner ends", async () => {
  await openPoll({ pollHoldMs: 1 })(request, never);
  clock.advance(3000);
  const waiting = openPoll()(request, never);
  // unknown before the first query
  await expect.poll(identified).toEqual([runner.runner_id]);
  expect(waiters.findLeasesEndingBefore(performance.now() + 6000)).toEqual([]);
  expect(waiters.findLeasesEndingBefore(performance.now() + 8000)).toEqual([runner.runner_id]);
  const run_id = await host.submit();
  expect((await waiting).claims).toMatchObject([{ run_id }]);
});

it("does not renew a lease for a poll by another owner", async () => {
  let renewable: string[] | null = null;
  const foreignPoll = openPoll({
    store: {
      apply: host.store.apply,
      read: {
        ...host.store.read,
        poller(query) {
          renewable = identified();
          return host.store.read.poller(query);
        },
      },
    },
  });
  await expect(foreignPoll(request, never, "eve")).rejects.toMatchObject({ conflict: "unknown_runner" });
  expect(renewable).toEqual([]);
});

it("queries again at once if a claim went to a poll that had disconnected", async () => {
  await openPoll({ pollHoldMs: 1 })(request, never);
  const disconnected = new AbortController();
  let hungUp: Promise<unknown> | null = null;
  const slow = openPoll({
    store: {
      read: host.store.read,
      async apply(ops) {
        const results = await host.store.apply(ops);
        // its answer is lost; the repeated poll was added before the claim was made
        disconnected.abort();
        return results;
      },
    },
  });
  hungUp = slow(request, disconnected.signal);
  await expect.poll(identified).toEqual([runner.runner_id]);
  // the second poll wants no runs, so the run wakes only the disconnected one
  const nextPoll = openPoll()({ ...request, want: 0 }, never);
  await expect.poll(identified).toEqual([runner.runner_id]);
  const run_id = await host.submit();
  await hungUp;
  expect((await nextPoll).claims).toMatchObject([{ run_id, attempt: 1 }]);
});

it("assigns no runs while the disk is low, and continues when there is space", async () => {
  let low: string | null = "3 MB left";
  const poll = openPoll({ getLowDiskReason: () => low, pollHoldMs: 1 });
  await poll(request, never);
  const run_id = await host.submit();
  const since = written();
  expect(await poll(request, never)).toEqual(nothing);
  expect(written()).toBe(since);
  low = null;
  expect((await poll(request, never)).claims).toMatchObject([{ run_id }]);
});

it("holds a poll for as long as the runner asks, within its own limit", async () => {
  await openPoll({ pollHoldMs: 1 })(request, never);
  expect(await openPoll({ pollHoldMs: 3_600_000 })({ ...request, hold_ms: 1 }, never)).toEqual(nothing);
  const limited = openPoll({ pollHoldMs: 3_600_000, maxPollHoldMs: 1 });
  expect(await limited({ ...request, hold_ms: 3_600_000 }, never)).toEqual(nothing);
  let isAnswered = false;
  const waiting = openPoll({ pollHoldMs: 1 })({ ...request, hold_ms: 3_600_000 }, never).finally(() => {
    isAnswered = true;
  });
  // Several shorter polls later it still waits.
  for (let index = 0; index < 5; index += 1) await openPoll({ pollHoldMs: 5 })({ ...request, want: 0 }, never);
  expect(isAnswered).toBe(false);
  const run_id = await host.submit();
  expect((await waiting).claims).toMatchObject([{ run_id }]);
});

it("ends when the dispatcher stops", async () => {
  const stopping = new AbortController();
  const waiting = openPoll({ stopSignal: stopping.signal, pollHoldMs: 3_600_000 })(request, never);
  await expect.poll(identified).toEqual([runner.runner_id]);
  stopping.abort();
  expect(await waiting).toEqual(nothing);
  expect(waiters.size).toBe(0);
});

it("ends the oldest of too many held polls of one runner, and leaves those of others alone", async () => {
  const other = await host.register({ name: "other", runner_key: "key-b" });
  const poll = openPoll();
  const stop = new AbortController();
  const held = poll({ ...request, runner_id: other.runner_id, epoch: other.epoch }, stop.signal);
  const oldest = poll(request, stop.signal);
  const later = Array.from({ length: maxWaitersPerRunner }, () => poll(request, stop.signal));
  expect(await oldest).toEqual(nothing);
  expect(waiters.size).toBe(maxWaitersPerRunner + 1);
  stop.abort();
  await Promise.all([held, ...later]);
});
