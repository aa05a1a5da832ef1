import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createAgent, drive } from "../../test/fixtures/dispatch/drive.ts";
import { openHost, type Host } from "../../test/fixtures/dispatch/host.ts";
import type { PollRequest, PollResponse } from "../model/runner-port.ts";
import type { Change, Op } from "../model/store.ts";
import { createHandOver } from "./hand-over.ts";
import { createPoll } from "./poll.ts";
import { createWaiters, type Waiters } from "./waiters.ts";

const neverAborted = new AbortController().signal;
let host: Host;
let waiters: Waiters;
let request: PollRequest;
let changes: Change[];
let driver: ReturnType<typeof drive>;
let waiting: Promise<PollResponse>[];
let stopController = new AbortController();
beforeEach(async () => {
  host = await openHost();
  driver = drive(host.store, () => new Date());
  waiters = createWaiters();
  changes = [];
  waiting = [];
  stopController = new AbortController();
  host.store.changes((change) => {
    changes.push(change);
    for (const demands of change.claimable) waiters.wakeFor(demands);
  });
  const { runner_id, epoch } = await host.register();
  request = { runner_id, epoch, claim_id: "c", want: 1, ack_order: 0 };
});
afterEach(async () => {
  stopController.abort();
  await Promise.allSettled(waiting);
  await host.close();
  await host.dispose();
});

/** Starts a poll, and resolves when it sleeps. */
async function startPoll(changed: Partial<PollRequest> = {}, caller = neverAborted) {
  const waitersBefore = waiters.size;
  const poll = createPoll({
    store: host.store,
    waiters: {
      ...waiters,
      add(runner_id, want) {
        const waiter = waiters.add(runner_id, want);
        const { wait } = waiter;
        waiter.wait = (ms, signal) => {
          sleepCount += 1;
          return wait(ms, signal);
        };
        return waiter;
      },
    },
    leaseMs: 10_000,
    pollHoldMs: 3_600_000,
    maxPollHoldMs: 3_600_000,
    getLowDiskReason: () => null,
    shortages: new Map(),
    signAttempt: () => "",
    storeNow: () => Date.now(),
    stopSignal: stopController.signal,
  });
  let sleepCount = 0;
  const held = poll({ ...request, ...changed }, caller);
  held.catch(() => undefined);
  waiting.push(held);
  await vi.waitFor(() => expect(sleepCount).toBe(1), 60_000);
  expect(waiters.size).toBe(waitersBefore + 1);
  changes.splice(0);
  return { response: held };
}

const openHandOver = (overrides: Partial<Parameters<typeof createHandOver>[0]> = {}) =>
  createHandOver({ store: host.store, waiters, getLowDiskReason: () => null, burstMs: 0, ...overrides });
const demands = { executor_type: "procedural" };

it("creates a run and claims it for a held poll in one transaction", async () => {
  const { response } = await startPoll();
  const create = driver.buildCreate({ demands });
  expect(await openHandOver()(create)).toEqual({ ok: true, last_n: 0 });
  expect(changes).toHaveLength(1);
  expect((await response).claims).toMatchObject([{ run_id: create.run.run_id, attempt: 1 }]);
  expect(changes).toHaveLength(1);
  expect(waiters.size).toBe(0);
});

it("wakes no other poll for a run that was handed over, and gives the next run to the next poll", async () => {
  const first = await startPoll();
  const other = await host.register({ name: "other", runner_key: "key-b" });
  const second = await startPoll({ runner_id: other.runner_id, epoch: other.epoch });
  const createRun = openHandOver();
  const [a, b] = [driver.buildCreate({ demands }), driver.buildCreate({ demands })];
  await createRun(a);
  expect((await first.response).claims).toMatchObject([{ run_id: a.run.run_id }]);
  expect(changes).toHaveLength(1);
  await createRun(b);
  expect((await second.response).claims).toMatchObject([{ run_id: b.run.run_id }]);
  expect(changes).toHaveLength(2);
});

it("gives a run to the newest poll of a runner, not to a late copy of an earlier poll", async () => {
  const late = await startPoll();
  const live = await startPoll({ claim_id: "newer" });
  const create = driver.buildCreate({ demands });
  await openHandOver()(create);
  expect((await live.response).claims).toMatchObject([{ run_id: create.run.run_id }]);
  expect(await late.response).toEqual({ claims: [], orders: [] });
});

it("gives the same run to every copy of a poll, because any of them may have lost its reader", async () => {
  const copies = [await startPoll(), await startPoll(), await startPoll()];
  const create = driver.buildCreate({ demands });
  await openHandOver()(create);
  for (const { response } of copies)
    expect((await response).claims).toMatchObject([{ run_id: create.run.run_id, attempt: 1 }]);
});

it("only creates the run if no held poll can take it, disk space is low, or runs come in bursts", async () => {
  await startPoll();
  const appliedOps: string[][] = [];
  const store = {
    apply: (ops: readonly Op[]) => {
      appliedOps.push(ops.map(({ op }) => op));
      return Promise.resolve([{ ok: true, last_n: 0 }]);
    },
  } as unknown as Host["store"];
  await openHandOver({ store })(driver.buildCreate({ demands: { tags: ["x"] } }));
  await openHandOver({ store, getLowDiskReason: () => "3 MB left" })(driver.buildCreate({ demands }));
  await openHandOver({ store })(driver.buildCreate({ demands, mode: "resume", session_id: "s" }));
  const createRun = openHandOver({ store, burstMs: 3_600_000 });
  await createRun(driver.buildCreate({ demands: { tags: ["x"] } }));
  await createRun(driver.buildCreate({ demands }));
  expect(appliedOps).toEqual(Array.from({ length: 5 }, () => ["create_run"]));
});

it("keeps a poll waiting if its claim got nothing, and gives it the next run", async () => {
  const { response } = await startPoll();
  const capped = createAgent("capped", { max_concurrent: 1 });
  const busy = await host.register({ name: "busy", runner_key: "key-b" });
  await driver.submit({ demands: { runner_id: busy.runner_id } }, capped);
  expect(await driver.claim(busy)).toHaveLength(1);
  await vi.waitFor(() => expect(waiters.reserve({ tags: ["x"] })).toBe(null));
  const createRun = openHandOver();
  const cappedRun = driver.buildCreate({ demands }, capped);
  await createRun(cappedRun);
  expect(await driver.statuses(cappedRun.run.run_id)).toEqual(["pending"]);
  const free = driver.buildCreate({ demands });
  await createRun(free);
  expect((await response).claims).toMatchObject([{ run_id: free.run.run_id }]);
});

it("gives a run to the runner's next poll if the runner disconnected while the run was claimed", async () => {
  const leaving = new AbortController();
  const first = await startPoll({}, leaving.signal);
  let next: Awaited<ReturnType<typeof startPoll>> | null = null;
  const create = driver.buildCreate({ demands });
  const createRun = openHandOver({
    store: {
      apply: (async (ops: readonly Op[]) => {
        leaving.abort();
        await first.response;
        next = await startPoll({ want: 0 });
        return host.store.apply(ops);
      }) as Host["store"]["apply"],
    },
  });
  await createRun(create);
  expect((await first.response).claims).toEqual([]);
  expect((await next!.response).claims).toMatchObject([{ run_id: create.run.run_id, attempt: 1 }]);
});

it("reports a failed transaction to the submitter, and keeps the poll waiting for the next run", async () => {
  const { response } = await startPoll();
  const store = { apply: () => Promise.reject(new Error("the disk is full")) } as unknown as Host["store"];
  await expect(openHandOver({ store })(driver.buildCreate({ demands }))).rejects.toThrow("the disk is full");
  const create = driver.buildCreate({ demands });
  await openHandOver()(create);
  expect((await response).claims).toMatchObject([{ run_id: create.run.run_id }]);
});

it("refuses the poll of a replaced registration, and leaves the run pending", async () => {
  const { response } = await startPoll();
  await host.register();
  const create = driver.buildCreate({ demands });
  expect(await openHandOver()(create)).toMatchObject({ ok: true });
  await expect(response).rejects.toMatchObject({ conflict: "old_epoch" });
  expect(await driver.statuses(create.run.run_id)).toEqual(["pending"]);
});
