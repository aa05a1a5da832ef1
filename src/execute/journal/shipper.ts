import type { Delta } from "../../model/executor.ts";
import type { ReportResponse, ReportRequest, RunnerPort } from "../../model/runner-port.ts";
import { createBackoff } from "../port/backoff.ts";
import type { Identity } from "../port/identity.ts";
import type { Journal } from "./journal.ts";
import { PortError } from "../../model/port-error.ts";
import { classifyPortError, type PortFailure } from "../port/port-failure.ts";
import { createWakeup } from "../port/wakeup.ts";

/** The journal of a run that this runner works on, until the coordinator has stored it. */
export interface Shipment {
  journal: Journal;
  /** Called when another runner has the run or the coordinator abandoned it. No more events are shipped. */
  onLost(): void;
  /** Called when the outcome is stored. */
  onFinished(): void;
  /** Called when the agent has used up its budget for today. */
  onSpent?(): void;
}

/** Ships journals to the coordinator, one report at a time. Events that arrive meanwhile go into the next report. */
export interface Shipper {
  add(shipment: Shipment): void;
  /** Schedules a report after a short delay, so that it can include other events. */
  notify(): void;
  /** Schedules a report after a longer delay, in which a short run ends. */
  notifyLater(): void;
  /** Reports at once, because a caller waits or the coordinator may count runs that this runner did not take. */
  flush(): void;
  sendPartial(run_id: string, attempt: number, delta: Delta): void;
  /**
   * Applies backpressure: waits while the coordinator answers but is too slow. While the coordinator is unreachable,
   * events go to disk.
   */
  waitForJournalSpace(journal: Journal): Promise<void>;
  /** Resolves when every shipment is finished or lost, or after `withinMs`. */
  waitUntilDrained(withinMs: number): Promise<void>;
  /** How many runs are not finished or lost yet. */
  readonly shipmentCount: number;
  /** Time since the last answered report was sent, or since a later one found the coordinator down. */
  readonly silentMs: number;
  /** Why the last report failed; null if it was answered or none was sent yet. */
  readonly lastFailure: PortFailure | null;
  readonly reportingMs: number;
  /** Resolves when the report in flight is answered, which may be never. Its failure is not reported. */
  stop(): Promise<void>;
}

export interface ShipperOptions {
  port: RunnerPort;
  identity: Identity;
  /** See ClaimLoop. */
  lastClosedClaimId: () => string | null;
  heartbeatMs: number;
  maxReportBytes: number;
  maxUnshippedBytes: number;
  monotonic: () => number;
  random: () => number;
  onFailure: (error: unknown, failure: PortFailure) => void;
}

/** The most pieces of partial text that wait for a report. Further ones are dropped. */
const maxPartials = 256;

/** Practically forever, because without shipments only a notification triggers a report. */
const idleWaitMs = 2 ** 30;

/** How long events are batched. */
const batchMs = 2;
/** How long the start of a run may wait to be reported. If the run ends within this time, one report contains both. */
const shortRunMs = 25;

/** Lists `initialShipments` as held from the first report on. */
export function startShipper(options: ShipperOptions, initialShipments: readonly Shipment[] = []): Shipper {
  const { port, identity, monotonic } = options;
  const shipments = new Map(initialShipments.map((shipment) => [toAttemptKey(shipment.journal), shipment]));
  const wakeup = createWakeup();
  const stopController = new AbortController();
  const backoff = createBackoff({ firstMs: 100, maxMs: options.heartbeatMs, random: options.random });
  let partials: ReportRequest["partials"] = [];
  let spaceWaiters: { journal: Journal; resolve: () => void }[] = [];
  let drainWaiters: (() => void)[] = [];
  /** The lease was last renewed at this time or later, because an answered report was sent or the coordinator was down. */
  let leaseStart = monotonic();
  let sentAt: number | null = null;
  let lastFailure: PortFailure | null = null;
  let batchTimer: { handle: NodeJS.Timeout; delayMs: number } | null = null;
  /** After a refusal, journals to ship event by event, to find and drop only the refused event. */
  let suspects: Shipment[] = [];

  const cancelBatch = (): void => {
    if (batchTimer !== null) clearTimeout(batchTimer.handle);
    batchTimer = null;
  };
  const flush = (): void => {
    cancelBatch();
    wakeup.notify();
  };
  /** Keeps a timer that is not longer, so that further events do not postpone the report. */
  const reportAfter = (delayMs: number): void => {
    if (batchTimer !== null && batchTimer.delayMs <= delayMs) return;
    cancelBatch();
    batchTimer = { handle: setTimeout(flush, delayMs), delayMs };
  };
  const notify = (): void => reportAfter(batchMs);
  const notifyLater = (): void => reportAfter(shortRunMs);

  const releaseWaiters = (): void => {
    const all = spaceWaiters;
    spaceWaiters = [];
    for (const waiter of all) {
      if (lastFailure !== null || waiter.journal.unshippedBytes <= options.maxUnshippedBytes) waiter.resolve();
      else spaceWaiters.push(waiter);
    }
    if (shipments.size === 0) for (const resolve of drainWaiters.splice(0)) resolve();
  };

  async function reportOnce(): Promise<boolean> {
    const { runner_id, epoch } = await identity.current();
    wakeup.reset();
    cancelBatch();
    const current = [...shipments.values()];
    suspects = suspects.filter((shipment) => current.includes(shipment) && hasMore(shipment.journal));
    const suspect = suspects[0] ?? null;
    const request = buildReport({
      runner_id,
      epoch,
      as_of_claim: options.lastClosedClaimId(),
      current,
      suspect,
      partials: suspect === null ? partials : [],
      maxBytes: suspect === null ? options.maxReportBytes : 1,
    });
    partials = [];
    sentAt = monotonic();
    try {
      const response = await port.report(request);
      leaseStart = sentAt;
      lastFailure = null;
      backoff.reset();
      return settle(request, response);
    } catch (error) {
      lastFailure = classifyPortError(error);
      if (lastFailure === "down") leaseStart = monotonic();
      if (stopController.signal.aborted) return false;
      // The runner has registered again meanwhile. The next report names the new registration.
      if (lastFailure === "register" && (await identity.hasRenewed(epoch))) return true;
      options.onFailure(error, lastFailure);
      if (isRefusedReport(error) && isolateRefused(request, current, suspect, error.message)) return true;
      if (lastFailure === "register") await identity.renew(epoch);
      else await backoff.wait(stopController.signal);
      return true;
    } finally {
      sentAt = null;
      releaseWaiters();
    }
  }

  /**
   * Finds the cause of a refused report, which would otherwise block every run. Returns whether the next report will
   * differ.
   */
  function isolateRefused(
    { events, finishes }: ReportRequest,
    current: readonly Shipment[],
    suspect: Shipment | null,
    reason: string,
  ): boolean {
    if (events.length === 0 && finishes.length === 0) return false;
    if (suspect !== null) return suspect.journal.replaceRefused(reason);
    suspects = current.filter(({ journal }) => hasMore(journal));
    return suspects.length > 0;
  }

  /** Returns whether the next report should be sent at once. */
  function settle(request: ReportRequest, response: ReportResponse): boolean {
    for (const attempt of [...response.fenced, ...response.abandon]) {
      const shipment = shipments.get(toAttemptKey(attempt));
      if (!shipment) continue;
      shipments.delete(toAttemptKey(attempt));
      shipment.onLost();
    }
    for (const attempt of response.over_budget ?? []) shipments.get(toAttemptKey(attempt))?.onSpent?.();
    let hasProgressed = false;
    for (const { n, ...attempt } of response.acked) {
      const journal = shipments.get(toAttemptKey(attempt))?.journal;
      if (!journal || journal.ackedN === n) continue;
      journal.ack(n);
      hasProgressed = true;
    }
    for (const finish of request.finishes) {
      const shipment = shipments.get(toAttemptKey(finish));
      if (!shipment || shipment.journal.ackedN < finish.last_n) continue;
      shipments.delete(toAttemptKey(finish));
      shipment.onFinished();
      hasProgressed = true;
    }
    // Without progress, retry with the next heartbeat instead of spinning.
    if (suspects.length > 0) return hasProgressed;
    return hasProgressed && [...shipments.values()].some(({ journal }) => isReady(journal, request));
  }

  async function run(): Promise<void> {
    let reportAtOnce = true; // The first report lists the runs that a restarted runner has.
    while (!stopController.signal.aborted) {
      // The open poll keeps an idle runner alive, see ../claim/claim-loop.ts.
      if (!reportAtOnce)
        await wakeup.wait(shipments.size > 0 ? options.heartbeatMs : idleWaitMs, stopController.signal);
      if (stopController.signal.aborted) return;
      reportAtOnce = await reportOnce();
    }
  }
  // The identity rejects only when the runner stops.
  const running = run().catch((error: unknown) => {
    if (!stopController.signal.aborted) options.onFailure(error, "silent");
  });

  return {
    add(shipment) {
      // The poll that returned this run also renewed the lease.
      if (shipments.size === 0) leaseStart = monotonic();
      shipments.set(toAttemptKey(shipment.journal), shipment);
      notifyLater();
    },
    notify,
    notifyLater,
    flush,
    sendPartial(run_id, attempt, delta) {
      if (partials.length < maxPartials) partials.push({ run_id, attempt, delta });
      notify();
    },
    async waitForJournalSpace(journal) {
      if (lastFailure !== null || journal.unshippedBytes <= options.maxUnshippedBytes) return;
      await new Promise<void>((resolve) => spaceWaiters.push({ journal, resolve }));
    },
    waitUntilDrained(withinMs) {
      if (shipments.size === 0) return Promise.resolve();
      return new Promise((resolve) => {
        const timer = setTimeout(resolve, withinMs);
        drainWaiters.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    },
    get shipmentCount() {
      return shipments.size;
    },
    get silentMs() {
      return monotonic() - leaseStart;
    },
    get lastFailure() {
      return lastFailure;
    },
    get reportingMs() {
      return sentAt === null ? 0 : monotonic() - sentAt;
    },
    async stop() {
      stopController.abort();
      cancelBatch();
      lastFailure ??= "silent"; // This releases the callers that wait for journal space.
      releaseWaiters();
      await running;
    },
  };
}

function isReady(journal: Journal, lastReport: ReportRequest): boolean {
  if (
    journal.outcome !== null &&
    !lastReport.finishes.some(({ run_id, attempt }) => run_id === journal.run_id && attempt === journal.attempt)
  )
    return true;
  return journal.lastN > journal.ackedN;
}

/** Whether the coordinator refused the report's content, not the runner. */
function isRefusedReport(error: unknown): error is PortError {
  return error instanceof PortError && error.conflict === "refused";
}

function hasMore({ outcome, lastN, ackedN }: Journal): boolean {
  return outcome !== null || lastN > ackedN;
}

interface ReportParts {
  runner_id: string;
  epoch: number;
  as_of_claim: string | null;
  current: Shipment[];
  /** If set, only this shipment's events are sent, one by one, and then its outcome. */
  suspect: Shipment | null;
  partials: ReportRequest["partials"];
  maxBytes: number;
}

function buildReport({
  runner_id,
  epoch,
  as_of_claim,
  current,
  suspect,
  partials,
  maxBytes,
}: ReportParts): ReportRequest {
  const report: ReportRequest = { runner_id, epoch, held: [], as_of_claim, events: [], partials, finishes: [] };
  let remainingBytes = maxBytes;
  for (const shipment of current) {
    const { journal } = shipment;
    const { run_id, attempt, outcome } = journal;
    report.held.push([run_id, attempt]);
    if (remainingBytes <= 0 || (suspect !== null && shipment !== suspect)) continue;
    const { events, bytes, isComplete } = journal.next(remainingBytes);
    remainingBytes -= bytes;
    if (events.length > 0) report.events.push({ run_id, attempt, events });
    // Send large results one at a time, since many could exceed what the coordinator takes.
    if (suspect !== null && events.length > 0) continue;
    if (outcome === null || !isComplete || (journal.outcomeBytes > remainingBytes && report.finishes.length > 0))
      continue;
    remainingBytes -= journal.outcomeBytes;
    report.finishes.push({ run_id, attempt, last_n: journal.lastN, outcome });
  }
  return report;
}

function toAttemptKey({ run_id, attempt }: { run_id: string; attempt: number }): string {
  return `${run_id}.${attempt}`;
}
