import type { Delta } from "../../model/executor.ts";
import type { ReportAnswer, ReportRequest, RunnerPort } from "../../model/runner-port.ts";
import { createBackoff } from "../port/backoff.ts";
import type { Identity } from "../port/identity.ts";
import type { Journal } from "./journal.ts";
import { PortError } from "../../model/port-error.ts";
import { portFault, type PortFault } from "../port/port-fault.ts";
import { createWakeup } from "../port/wakeup.ts";

/** A held run's journal on its way to the coordinator. */
export interface Shipment {
  journal: Journal;
  /** Another runner has the run now, or the coordinator abandoned it. Nothing more is shipped. */
  onLost(): void;
  /** The outcome is stored. */
  onFinished(): void;
  /** The agent has used up its budget for today. */
  onSpent?(): void;
}

/** Ships journals to the coordinator, one report at a time. Events that arrive meanwhile go into the next report. */
export interface Shipper {
  add(shipment: Shipment): void;
  /** Schedules a report in a moment, so that it can include what else arrives until then. */
  notify(): void;
  /** Reports at once, because somebody waits or the coordinator may count runs that this runner did not take. */
  flush(): void;
  partial(run_id: string, attempt: number, delta: Delta): void;
  /** Applies backpressure: waits while the coordinator answers but is too slow. While it is away, events go to disk. */
  waitForRoom(journal: Journal): Promise<void>;
  /** Resolves when every shipment is finished or lost, or after `withinMs`. */
  drained(withinMs: number): Promise<void>;
  readonly held: number;
  /** Time since the last answered report was sent, or since a later one found the coordinator down. */
  readonly silentMs: number;
  /** Why the last report failed; null if it was answered or none was sent yet. */
  readonly lastFault: PortFault | null;
  readonly reportingMs: number;
  /** Resolves when the report in flight is answered, which may be never. Its failure is not reported. */
  stop(): Promise<void>;
}

export interface ShipperOptions {
  port: RunnerPort;
  identity: Identity;
  /** See ClaimLoop. */
  asOfClaim: () => string | null;
  heartbeatMs: number;
  maxReportBytes: number;
  maxUnshippedBytes: number;
  monotonic: () => number;
  random: () => number;
  onFault: (error: unknown, fault: PortFault) => void;
}

/** Partial text is best effort: beyond this it is dropped. */
const maxPartials = 256;

/** Practically never: without shipments, only a notification triggers a report. */
const longestIdleMs = 2 ** 30;

/** Lets a very short run start, spawn and end in a single report. */
const gatherMs = 2;

/** Lists `found` as held from the first report on. */
export function startShipper(options: ShipperOptions, found: readonly Shipment[] = []): Shipper {
  const { port, identity, monotonic } = options;
  const shipments = new Map(found.map((shipment) => [keyOf(shipment.journal), shipment]));
  const wakeup = createWakeup();
  const stopping = new AbortController();
  const backoff = createBackoff({ firstMs: 100, longestMs: options.heartbeatMs, random: options.random });
  let partials: ReportRequest["partials"] = [];
  let waiters: { journal: Journal; resolve: () => void }[] = [];
  let drainWaiters: (() => void)[] = [];
  /** The lease runs at least from here: an answered report was sent, or the coordinator was down. */
  let leasedFrom = monotonic();
  let sentAt: number | null = null;
  let lastFault: PortFault | null = null;
  let gathering: NodeJS.Timeout | null = null;
  /** After a refusal, journals to ship event by event, to find and leave out only the refused event. */
  let suspects: Shipment[] = [];

  const cancelGathering = (): void => {
    if (gathering !== null) clearTimeout(gathering);
    gathering = null;
  };
  const flush = (): void => {
    cancelGathering();
    wakeup.notify();
  };
  const notify = (): void => {
    gathering ??= setTimeout(flush, gatherMs);
  };

  const releaseWaiters = (): void => {
    const all = waiters;
    waiters = [];
    for (const one of all) {
      if (lastFault !== null || one.journal.unshippedBytes <= options.maxUnshippedBytes) one.resolve();
      else waiters.push(one);
    }
    if (shipments.size === 0) for (const resolve of drainWaiters.splice(0)) resolve();
  };

  async function reportOnce(): Promise<boolean> {
    const { runner_id, epoch } = await identity.current();
    wakeup.reset();
    cancelGathering();
    const sending = [...shipments.values()];
    suspects = suspects.filter((one) => sending.includes(one) && hasMore(one.journal));
    const suspect = suspects[0] ?? null;
    const request = buildReport({
      runner_id,
      epoch,
      as_of_claim: options.asOfClaim(),
      sending,
      suspect,
      partials: suspect === null ? partials : [],
      maxBytes: suspect === null ? options.maxReportBytes : 1,
    });
    partials = [];
    sentAt = monotonic();
    try {
      const answer = await port.report(request);
      leasedFrom = sentAt;
      lastFault = null;
      backoff.reset();
      return settle(request, answer);
    } catch (error) {
      lastFault = portFault(error);
      if (lastFault === "down") leasedFrom = monotonic();
      if (stopping.signal.aborted) return false;
      options.onFault(error, lastFault);
      if (isRefusedReport(error) && isolateRefused(request, sending, suspect, error.message)) return true;
      if (lastFault === "register") await identity.renew(epoch);
      else await backoff.wait(stopping.signal);
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
    sending: readonly Shipment[],
    suspect: Shipment | null,
    why: string,
  ): boolean {
    if (events.length === 0 && finishes.length === 0) return false;
    if (suspect !== null) return suspect.journal.replaceRefused(why);
    suspects = sending.filter(({ journal }) => hasMore(journal));
    return suspects.length > 0;
  }

  /** Returns whether the next report should be sent at once. */
  function settle(request: ReportRequest, answer: ReportAnswer): boolean {
    for (const lost of [...answer.fenced, ...answer.abandon]) {
      const shipment = shipments.get(keyOf(lost));
      if (!shipment) continue;
      shipments.delete(keyOf(lost));
      shipment.onLost();
    }
    for (const over of answer.over_budget ?? []) shipments.get(keyOf(over))?.onSpent?.();
    let progress = false;
    for (const { n, ...of } of answer.acked) {
      const journal = shipments.get(keyOf(of))?.journal;
      if (!journal || journal.ackedN === n) continue;
      journal.ack(n);
      progress = true;
    }
    for (const finish of request.finishes) {
      const shipment = shipments.get(keyOf(finish));
      if (!shipment || shipment.journal.ackedN < finish.last_n) continue;
      shipments.delete(keyOf(finish));
      shipment.onFinished();
      progress = true;
    }
    // without progress, retry with the next heartbeat instead of spinning
    if (suspects.length > 0) return progress;
    return progress && [...shipments.values()].some(({ journal }) => isReady(journal, request));
  }

  async function run(): Promise<void> {
    let again = true; // the first report tells what a restarted runner holds
    while (!stopping.signal.aborted) {
      // the open poll keeps an idle runner alive, see ../claim/claim-loop.ts
      if (!again) await wakeup.wait(shipments.size > 0 ? options.heartbeatMs : longestIdleMs, stopping.signal);
      if (stopping.signal.aborted) return;
      again = await reportOnce();
    }
  }
  // the identity rejects only when the runner stops
  const running = run().catch((error: unknown) => {
    if (!stopping.signal.aborted) options.onFault(error, "silent");
  });

  return {
    add(shipment) {
      // the poll that returned this run also renewed the lease
      if (shipments.size === 0) leasedFrom = monotonic();
      shipments.set(keyOf(shipment.journal), shipment);
      notify();
    },
    notify,
    flush,
    partial(run_id, attempt, delta) {
      if (partials.length < maxPartials) partials.push({ run_id, attempt, delta });
      notify();
    },
    async waitForRoom(journal) {
      if (lastFault !== null || journal.unshippedBytes <= options.maxUnshippedBytes) return;
      await new Promise<void>((resolve) => waiters.push({ journal, resolve }));
    },
    drained(withinMs) {
      if (shipments.size === 0) return Promise.resolve();
      return new Promise((resolve) => {
        const timer = setTimeout(resolve, withinMs);
        drainWaiters.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    },
    get held() {
      return shipments.size;
    },
    get silentMs() {
      return monotonic() - leasedFrom;
    },
    get lastFault() {
      return lastFault;
    },
    get reportingMs() {
      return sentAt === null ? 0 : monotonic() - sentAt;
    },
    async stop() {
      stopping.abort();
      cancelGathering();
      lastFault ??= "silent"; // release those that wait for room
      releaseWaiters();
      await running;
    },
  };
}

function isReady(journal: Journal, sent: ReportRequest): boolean {
  if (
    journal.outcome !== null &&
    !sent.finishes.some(({ run_id, attempt }) => run_id === journal.run_id && attempt === journal.attempt)
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

interface Parts {
  runner_id: string;
  epoch: number;
  as_of_claim: string | null;
  sending: Shipment[];
  /** If set, only this shipment's events are sent, one by one, and then its outcome. */
  suspect: Shipment | null;
  partials: ReportRequest["partials"];
  maxBytes: number;
}

function buildReport({ runner_id, epoch, as_of_claim, sending, suspect, partials, maxBytes }: Parts): ReportRequest {
  const report: ReportRequest = { runner_id, epoch, held: [], as_of_claim, events: [], partials, finishes: [] };
  let left = maxBytes;
  for (const shipment of sending) {
    const { journal } = shipment;
    const { run_id, attempt, outcome } = journal;
    report.held.push([run_id, attempt]);
    if (left <= 0 || (suspect !== null && shipment !== suspect)) continue;
    const { events, bytes, isComplete } = journal.next(left);
    left -= bytes;
    if (events.length > 0) report.events.push({ run_id, attempt, events });
    // send large results one at a time, since many could exceed what the coordinator takes
    if (suspect !== null && events.length > 0) continue;
    if (outcome === null || !isComplete || (journal.outcomeBytes > left && report.finishes.length > 0)) continue;
    left -= journal.outcomeBytes;
    report.finishes.push({ run_id, attempt, last_n: journal.lastN, outcome });
  }
  return report;
}

function keyOf({ run_id, attempt }: { run_id: string; attempt: number }): string {
  return `${run_id}.${attempt}`;
}
