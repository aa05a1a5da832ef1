import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { ReportResponse, ReportRequest, RunnerPort } from "../../model/runner-port.ts";
import { createIdentity } from "../port/identity.ts";
import { openJournal } from "./journal.ts";
import { isUnansweredFor } from "../claim/lease-expiry.ts";
import { openLogFile } from "./log-file.ts";
import { PortError } from "../../model/port-error.ts";
import { startShipper } from "./shipper.ts";

/** Uses the long default timeout, because a busy machine may be slow. */
const poll = <T>(get: () => T | Promise<T>) => expect.poll(get, { interval: 10 });

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean();
});

/** A shipper whose coordinator is a function. */
function setUp(
  respond: (request: ReportRequest, requestNumber: number) => Promise<ReportResponse> | ReportResponse,
  heartbeatMs = 20,
  monotonic = () => performance.now(),
) {
  const directory = mkdtempSync(join(tmpdir(), "drover-shipper-"));
  const requests: ReportRequest[] = [];
  const port: Pick<RunnerPort, "report"> = {
    async report(request) {
      requests.push(structuredClone(request));
      return respond(request, requests.length);
    },
  };
  const shipper = startShipper({
    port: port as RunnerPort, // The shipper calls only `report`.
    identity: createIdentity(() =>
      Promise.resolve({ runner_id: "r", epoch: 1, lease_ms: 1000, store_id: "s", max_file_bytes: 1 }),
    ),
    lastClosedClaimId: () => null,
    heartbeatMs,
    maxReportBytes: 1000,
    maxUnshippedBytes: 500,
    monotonic,
    random: () => 0,
    onFailure: () => undefined,
  });
  cleanups.push(shipper.stop, () => rm(directory, { recursive: true, force: true }));
  const createJournal = (run_id: string) =>
    openJournal({
      run_id,
      attempt: 1,
      now: () => new Date(),
      memoryBytes: 10_000,
      maxBytes: 1e6,
      open: () => openLogFile(join(directory, run_id), { create: true }),
    });
  return { shipper, requests, createJournal };
}

const emptyResponse: ReportResponse = { acked: [], fenced: [], abandon: [] };
const output = (text: string) => ({ type: "output", stream: "stdout", text }) as const;
const completed = { status: "completed", exit_code: 0, text: null } as const;

/** Acknowledges everything that was sent. */
const acknowledgeAll = (request: ReportRequest): ReportResponse => ({
  ...emptyResponse,
  acked: request.events.map(({ run_id, attempt, events }) => ({ run_id, attempt, n: events.at(-1)!.n })),
});

test("a run is finished only when every event before its outcome is stored", async () => {
  let finishedAt = 0;
  const { shipper, requests, createJournal } = setUp((request, requestNumber) =>
    requestNumber < 4
      ? { ...emptyResponse, acked: request.events.map(({ run_id }) => ({ run_id, attempt: 1, n: 1 })) }
      : acknowledgeAll(request),
  );
  const journal = createJournal("a");
  journal.append(output("x"));
  journal.append(output("y"));
  journal.finish(completed);
  shipper.add({ journal, onLost: () => undefined, onFinished: () => (finishedAt = requests.length) });
  shipper.notify();
  await poll(() => finishedAt).toBeGreaterThan(3);
  expect(requests.at(-1)!.finishes).toHaveLength(1);
});

test("sends events that arrive during a report together in the next one", async () => {
  const gate: { open?: () => void } = {};
  const { shipper, requests, createJournal } = setUp(async (request, requestNumber) => {
    if (requestNumber === 2) await new Promise<void>((resolve) => (gate.open = resolve));
    return acknowledgeAll(request);
  }, 10_000);
  await poll(() => requests.length).toBe(1);
  const journal = createJournal("a");
  shipper.add({ journal, onLost: () => undefined, onFinished: () => undefined });
  journal.append(output("first"));
  shipper.notify();
  await poll(() => requests.length).toBe(2);
  for (const text of ["second", "third"]) {
    journal.append(output(text));
    shipper.notify();
  }
  gate.open?.();
  await poll(() => requests.length).toBe(3);
  expect(requests[2]!.events[0]!.events.map(({ n }) => n)).toEqual([2, 3]);
});

test("reports the start of a run with its end, and does not postpone it for further events", async () => {
  const { shipper, requests, createJournal } = setUp(acknowledgeAll, 2 ** 30);
  await poll(() => requests.length).toBe(1);
  const short = createJournal("short");
  let finishedRuns = false;
  shipper.add({ journal: short, onLost: () => undefined, onFinished: () => (finishedRuns = true) });
  short.append({ type: "status", status: "running" });
  shipper.notifyLater();
  short.finish(completed);
  shipper.flush();
  await poll(() => finishedRuns).toBe(true);
  expect(requests).toHaveLength(2);
  const long = createJournal("long");
  shipper.add({ journal: long, onLost: () => undefined, onFinished: () => undefined });
  while (requests.length === 2) {
    long.append({ type: "status", status: "running" });
    shipper.notifyLater();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  expect(requests[2]!.held).toEqual([["long", 1]]);
  const requestsBefore = requests.length;
  long.append(output("x"));
  shipper.notifyLater();
  shipper.notify();
  await poll(() => requests.length).toBeGreaterThan(requestsBefore);
});

test("sends heartbeats without events that list the runs in progress", async () => {
  const { shipper, requests, createJournal } = setUp(acknowledgeAll);
  shipper.add({ journal: createJournal("a"), onLost: () => undefined, onFinished: () => undefined });
  await poll(() => requests.filter(({ held }) => held.length === 1).length).toBeGreaterThan(2);
});

test("limits the size of a report, and sends large results one by one", async () => {
  const { shipper, requests, createJournal } = setUp(acknowledgeAll);
  let finishedRuns = 0;
  for (const id of ["a", "b", "c"]) {
    const journal = createJournal(id);
    for (let i = 0; i < 10; i++) journal.append(output("x".repeat(150)));
    journal.finish({ ...completed, text: "y".repeat(900) });
    shipper.add({ journal, onLost: () => undefined, onFinished: () => finishedRuns++ });
  }
  shipper.notify();
  await poll(() => finishedRuns).toBe(3);
  for (const { events, finishes } of requests) {
    expect(JSON.stringify(events).length).toBeLessThan(1500);
    expect(finishes.length).toBeLessThanOrEqual(1);
  }
});

test("makes a writer wait for a slow coordinator, but not for one that is unreachable", async () => {
  let isUnreachable = false;
  const gate: { open?: () => void } = {};
  const { shipper, createJournal, requests } = setUp(async (request) => {
    if (isUnreachable) throw new Error("away");
    await new Promise<void>((resolve) => (gate.open = resolve));
    return acknowledgeAll(request);
  });
  await poll(() => requests.length).toBe(1);
  const journal = createJournal("a");
  shipper.add({ journal, onLost: () => undefined, onFinished: () => undefined });
  for (let i = 0; i < 5; i++) journal.append(output("x".repeat(200)));
  let hasSpace = false;
  const wait = shipper.waitForJournalSpace(journal).then(() => (hasSpace = true));
  await new Promise((resolve) => setImmediate(resolve));
  expect(hasSpace).toBe(false);
  isUnreachable = true;
  gate.open?.();
  await wait;
  await shipper.waitForJournalSpace(journal);
});

test("does not consider the lease expired when a coordinator comes back after a long time and responds slowly", async () => {
  let now = 0;
  const refused = new PortError("away", "nobody there", Object.assign(new Error(), { code: "ECONNREFUSED" }));
  const { shipper, requests } = setUp(
    (_request, requestNumber) => {
      if (requestNumber === 1) return emptyResponse;
      if (requestNumber > 2) now = 60_900;
      throw requestNumber === 2 ? refused : new PortError("away", "no answer within 5000 ms");
    },
    20,
    () => now,
  );
  await poll(() => requests.length).toBe(1);
  now = 60_000;
  shipper.flush();
  await poll(() => shipper.lastFailure).toBe("silent");
  expect(shipper.silentMs).toBe(900);
  expect(isUnansweredFor(shipper, 1000)).toBe(false);
  now += 101;
  expect(isUnansweredFor(shipper, 1000)).toBe(true);
});

test("drops an event that the coordinator always refuses, and ships everything else", async () => {
  const stored: unknown[] = [];
  const isBad = (value: unknown): boolean => JSON.stringify(value).includes("poison");
  const finishedRuns: string[] = [];
  const { shipper, requests, createJournal } = setUp((request) => {
    if (isBad(request.events) || isBad(request.finishes)) throw new PortError("refused", "body.events: not so");
    for (const { run_id, events } of request.events)
      stored.push(...events.map(({ n, event }) => [run_id, n, "text" in event ? event.text : event]));
    return acknowledgeAll(request);
  });
  const [good, bad] = [createJournal("good"), createJournal("bad")];
  for (const text of ["one", "poison", "two", "poison"]) bad.append(output(text));
  bad.finish({ status: "completed", exit_code: 0, text: "poison" });
  good.append(output("fine"));
  good.finish(completed);
  for (const journal of [good, bad])
    shipper.add({ journal, onLost: () => undefined, onFinished: () => finishedRuns.push(journal.run_id) });
  await poll(() => [...finishedRuns].sort()).toEqual(["bad", "good"]);
  const refused = { type: "error", code: "event_refused" };
  expect(stored.filter((entry) => (entry as unknown[])[0] === "bad")).toMatchObject([
    ["bad", 1, "one"],
    ["bad", 2, refused],
    ["bad", 3, "two"],
    ["bad", 4, refused],
  ]);
  expect(stored).toContainEqual(["good", 1, "fine"]);
  const outcome = requests.flatMap(({ finishes }) => finishes).findLast(({ run_id }) => run_id === "bad")?.outcome;
  expect(outcome).toMatchObject({ status: "failed", reason: "internal" });
});
