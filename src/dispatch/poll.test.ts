import { afterEach, beforeEach, expect, it } from "vitest";
import { openHost, createManualClock, type Host } from "../../test/fixtures/dispatch/host.ts";
import type { PollRequest, RegistrationResult } from "../model/runner-port.ts";
import { createPoll, type PollDeps } from "./poll.ts";
import { createWaiters, maxWaitersPerRunner, type Waiters } from "./waiters.ts";

const neverAborted = new AbortController().signal;
const leaseMs = 10_000;
const clock = createManualClock();
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
    // A poll lasts this long only if a wake was lost.
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
const countWrittenRows = () => Number(host.store.connection.sql("select total_changes() as rows").get()?.["rows"]);
const readLeaseLeft = async () => {
  const poller = await host.store.read.poller(request);
  return "conflict" in poller ? null : poller.lease_until - clock.now().getTime();
};
const nothing = { claims: [], orders: [] };
const listIdentified = () => waiters.findLeasesEndingBefore(Number.POSITIVE_INFINITY);

it("stores a claim_id once and writes nothing for later polls with it", async () => {
  const poll = openPoll({ pollHoldMs: 1 });
  const rowsBefore = countWrittenRows();
  expect(await poll(request, neverAborted)).toEqual(nothing);
  const rowsAfter = countWrittenRows();
  expect(rowsAfter).toBeGreaterThan(rowsBefore);
  for (let i = 0; i < 3; i += 1) expect(await poll(request, neverAborted)).toEqual(nothing);
  expect(countWrittenRows()).toBe(rowsAfter);
  await poll({ ...request, claim_id: "another" }, neverAborted);
  expect(countWrittenRows()).toBeGreaterThan(rowsAfter);
  const run_id = await host.submit();
  expect((await poll({ ...request, claim_id: "another" }, neverAborted)).claims).toMatchObject([{ run_id }]);
});

it("misses no run that arrives while it queries the store", async () => {
  await openPoll({ pollHoldMs: 1 })(request, neverAborted);
  let run_id = "";
  const poll = openPoll({
    store: {
      apply: (ops) => host.store.apply(ops),
      read: {
        ...host.store.read,
        async poller(poller) {
          const poller_row = await host.store.read.poller(poller);
          run_id = await host.submit();
          return poller_row;
        },
      },
    },
  });
  expect((await poll(request, neverAborted)).claims).toMatchObject([{ run_id }]);
});

it("renews the lease at once if little of it is left or the remaining time is unknown", async () => {
  await openPoll({ pollHoldMs: 1 })(request, neverAborted);
  clock.advance(4000);
  await openPoll({ pollHoldMs: 1 })(request, neverAborted);
  expect(await readLeaseLeft()).toBe(6000);
  clock.advance(1001);
  await openPoll({ pollHoldMs: 1 })(request, neverAborted);
  expect(await readLeaseLeft()).toBe(leaseMs);
  clock.advance(1000);
  await openPoll({ pollHoldMs: 1, storeNow: () => null })(request, neverAborted);
  expect(await readLeaseLeft()).toBe(leaseMs);
});

it("knows when the lease of a waiting runner ends", async () => {
  await openPoll({ pollHoldMs: 1 })(request, neverAborted);
  clock.advance(3000);
  const waiting = openPoll()(request, neverAborted);
  // The lease's end is unknown before the first query.
  await expect.poll(listIdentified).toEqual([runner.runner_id]);
  expect(waiters.findLeasesEndingBefore(performance.now() + 6000)).toEqual([]);
  expect(waiters.findLeasesEndingBefore(performance.now() + 8000)).toEqual([runner.runner_id]);
  const run_id = await host.submit();
  expect((await waiting).claims).toMatchObject([{ run_id }]);
});

it("does not renew a lease for a poll by another owner", async () => {
  let renewableRunners: string[] | null = null;
  const otherOwnersPoll = openPoll({
    store: {
      apply: host.store.apply,
      read: {
        ...host.store.read,
        poller(query) {
          renewableRunners = listIdentified();
          return host.store.read.poller(query);
        },
      },
    },
  });
  await expect(otherOwnersPoll(request, neverAborted, "eve")).rejects.toMatchObject({ conflict: "unknown_runner" });
  expect(renewableRunners).toEqual([]);
});

it("queries again at once if a claim went to a poll that had disconnected", async () => {
  await openPoll({ pollHoldMs: 1 })(request, neverAborted);
  const disconnected = new AbortController();
  let lostPoll: Promise<unknown> | null = null;
  const slow = openPoll({
    store: {
      read: host.store.read,
      async apply(ops) {
        const results = await host.store.apply(ops);
        // The response is lost. The repeated poll was added before the claim was made.
        disconnected.abort();
        return results;
      },
    },
  });
  lostPoll = slow(request, disconnected.signal);
  await expect.poll(listIdentified).toEqual([runner.runner_id]);
  // The second poll wants no runs, so the run wakes only the disconnected one.
  const nextPoll = openPoll()({ ...request, want: 0 }, neverAborted);
  await expect.poll(listIdentified).toEqual([runner.runner_id]);
  const run_id = await host.submit();
  await lostPoll;
  expect((await nextPoll).claims).toMatchObject([{ run_id, attempt: 1 }]);
});

it("assigns no runs while the disk is low, and continues when there is space", async () => {
  let low: string | null = "3 MB left";
  const poll = openPoll({ getLowDiskReason: () => low, pollHoldMs: 1 });
  await poll(request, neverAborted);
  const run_id = await host.submit();
  const rowsAfter = countWrittenRows();
  expect(await poll(request, neverAborted)).toEqual(nothing);
  expect(countWrittenRows()).toBe(rowsAfter);
  low = null;
  expect((await poll(request, neverAborted)).claims).toMatchObject([{ run_id }]);
});

it("holds a poll for as long as the runner asks, up to the coordinator's limit", async () => {
  await openPoll({ pollHoldMs: 1 })(request, neverAborted);
  expect(await openPoll({ pollHoldMs: 3_600_000 })({ ...request, hold_ms: 1 }, neverAborted)).toEqual(nothing);
  const limited = openPoll({ pollHoldMs: 3_600_000, maxPollHoldMs: 1 });
  expect(await limited({ ...request, hold_ms: 3_600_000 }, neverAborted)).toEqual(nothing);
  let hasEnded = false;
  const waiting = openPoll({ pollHoldMs: 1 })({ ...request, hold_ms: 3_600_000 }, neverAborted).finally(() => {
    hasEnded = true;
  });
  // Several shorter polls later it still waits.
  for (let index = 0; index < 5; index += 1) await openPoll({ pollHoldMs: 5 })({ ...request, want: 0 }, neverAborted);
  expect(hasEnded).toBe(false);
  const run_id = await host.submit();
  expect((await waiting).claims).toMatchObject([{ run_id }]);
});

it("ends a held poll when the dispatcher stops", async () => {
  const stopController = new AbortController();
  const waiting = openPoll({ stopSignal: stopController.signal, pollHoldMs: 3_600_000 })(request, neverAborted);
  await expect.poll(listIdentified).toEqual([runner.runner_id]);
  stopController.abort();
  expect(await waiting).toEqual(nothing);
  expect(waiters.size).toBe(0);
});

it("ends the oldest of too many held polls of one runner, and leaves those of others alone", async () => {
  const other = await host.register({ name: "other", runner_key: "key-b" });
  const poll = openPoll();
  const controller = new AbortController();
  const held = poll({ ...request, runner_id: other.runner_id, epoch: other.epoch }, controller.signal);
  const oldest = poll(request, controller.signal);
  const later = Array.from({ length: maxWaitersPerRunner }, () => poll(request, controller.signal));
  expect(await oldest).toEqual(nothing);
  expect(waiters.size).toBe(maxWaitersPerRunner + 1);
  controller.abort();
  await Promise.all([held, ...later]);
});
