import { afterEach, beforeEach, expect, it } from "vitest";
import { type Host, openHost, serve, createManualClock } from "../../test/fixtures/dispatch/host.ts";
import { HostError } from "../model/errors.ts";

const neverAborted = new AbortController().signal;
let host: Host;
beforeEach(async () => {
  host = await openHost({ clock: createManualClock() });
});
afterEach(async () => {
  await host.close();
  await host.dispose();
});

it("ends the polls whose leases it cannot renew, so that another coordinator can renew them", async () => {
  let isAway = false;
  const fault = new HostError({ code: "DROVER-STA-008", message: "the database is away" });
  const other = serve(
    { ...host.store, apply: (ops) => (isAway ? Promise.reject(fault) : host.store.apply(ops)) },
    { leaseMs: 400, pollHoldMs: 3_600_000, rescueEveryMs: 1e9, onError: () => undefined },
  );
  await other.dispatcher.start();
  const { runner_id, epoch } = await other.register({ name: "waits" });
  const request = { runner_id, epoch, claim_id: "c", want: 1, ack_order: 0 };
  const outcome = other.port.poll(request, neverAborted).then(
    () => "no error",
    (error: unknown) => error,
  );
  // Its claim_id is stored, so the poll now waits.
  await expect.poll(() => host.store.read.poller(request)).toMatchObject({ idle: true });
  isAway = true;
  expect(await outcome).toBe(fault);
  await other.close();
});

it("keeps renewing the leases of waiting runners, and of no others", async () => {
  const other = await openHost({ leaseMs: 6000, rescueEveryMs: 50, pollHoldMs: 3_600_000 });
  await other.dispatcher.start();
  const [waits, silent] = [await other.register({ name: "waits" }), await other.register({ name: "silent" })];
  const disconnected = new AbortController();
  const request = { runner_id: waits.runner_id, epoch: waits.epoch, claim_id: "same", want: 1, ack_order: 0 };
  const waiting = other.port.poll(request, disconnected.signal);
  const seen = new Set<string | undefined>();
  const statuses = async () => {
    const rows = new Map((await other.dispatcher.listRunners()).map((row) => [row.runner_id, row]));
    seen.add(rows.get(waits.runner_id)?.last_seen_at);
    return [rows.get(waits.runner_id)?.status, rows.get(silent.runner_id)?.status, seen.size > 4];
  };
  await expect.poll(statuses, { interval: 20 }).toEqual(["online", "lost", true]);
  disconnected.abort();
  expect(await waiting).toEqual({ claims: [], orders: [] });
  await other.close();
  await other.dispose();
});
