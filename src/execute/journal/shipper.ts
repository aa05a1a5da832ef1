import type { Delta } from "../../model/executor.ts";
import type { ReportAnswer, ReportRequest, RunnerPort } from "../../model/runner-port.ts";
import { createBackoff } from "../port/backoff.ts";
import type { Identity } from "../port/identity.ts";
import type { Journal } from "./journal.ts";
import { PortError } from "../../model/port-error.ts";
import { portFault, type PortFault } from "../port/port-fault.ts";
import { createWakeup } from "../port/wakeup.ts";

/** Everything this runner holds, and what became of it. */
export interface Shipment {
  journal: Journal;
  /** The attempt is another's now, or is to end at once: nothing of it is wanted any more. */
  onLost(): void;
  /** The finish is stored. */
  onFinished(): void;
  /** The agent has spent what it may spend today. */
  onSpent?(): void;
}

/** Brings journals to the coordinator, one report at a time; what piles up meanwhile goes into the next. */
export interface Shipper {
  add(shipment: Shipment): void;
  /** There is something new to ship: in a moment, together with what else comes until then. */
  notify(): void;
  /** Reports at once: somebody waits for it, or the coordinator may believe that this runner holds more than it does. */
  flush(): void;
  partial(run_id: string, attempt: number, delta: Delta): void;
  /** Waits while the coordinator is there but too slow for this journal. While it is away, the disk takes it. */
  waitForRoom(journal: Journal): Promise<void>;
  /** Resolves when everything added has been settled, or the time is over. */
  drained(withinMs: number): Promise<void>;
  readonly held: number;
  /** Since the last answered report was sent, or a later one found nobody there. */
  readonly silentMs: number;
  /** Why the last report failed; null where it was answered or none was made yet. */
  readonly lastFault: PortFault | null;
  readonly reportingMs: number;
  /** Resolves when the report that is under way was answered, which may be never. How that goes is not told any more. */
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

/** Best effort means little: what does not go with the next report or the one after is old news. */
const maxPartials = 256;

/** As good as never: a wakeup rings when there is something to say. */
const longestIdleMs = 2 ** 30;

/** A run that begins, spawns and ends in a moment is one report, and none is written while it begins. */
const gatherMs = 2;

/** `found` is listed as held from the very first report on. */
export function startShipper(options: ShipperOptions, found: readonly Shipment[] = []): Shipper {
  const { port, identity, monotonic } = options;
  const shipments = new Map(found.map((shipment) => [keyOf(shipment.journal), shipment]));
  const wakeup = createWakeup();
  const stopping = new AbortController();
  const backoff = createBackoff({ firstMs: 100, longestMs: options.heartbeatMs, random: options.random });
  let partials: ReportRequest["partials"] = [];
  let waiters: { journal: Journal; resolve: () => void }[] = [];
  let drainWaiters: (() => void)[] = [];
  /** No lease can be over before one length from here: an answered report was sent, or nobody was there to judge. */
  let leasedFrom = monotonic();
  let sentAt: number | null = null;
  let lastFault: PortFault | null = null;
  let gathering: NodeJS.Timeout | null = null;
  /** After a refusal: the journals to ship event by event, so that only what is refused is left out. */
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
      if (isRefusedReport(error) && suspectsRefused(request, sending, suspect, error.message)) return true;
      if (lastFault === "register") await identity.renew(epoch);
      else await backoff.wait(stopping.signal);
      return true;
    } finally {
      sentAt = null;
      releaseWaiters();
    }
  }

  /** A report that is always refused would hold up every run. Whether the next one will be another. */
  function suspectsRefused(
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

  /** Whether there is a reason to send the next report at once. */
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
    // one that makes no progress is tried again with the next heartbeat, not in a circle
    if (suspects.length > 0) return progress;
    return progress && [...shipments.values()].some(({ journal }) => isReady(journal, request));
  }

  async function run(): Promise<void> {
    let again = true; // the first says what a runner that was restarted holds
    while (!stopping.signal.aborted) {
      // an idle runner is kept alive by its held poll, see ./claim-loop.ts
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
      // the claim it comes from has just been answered, and its lease with it
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
      lastFault ??= "silent"; // whoever waits for room goes on
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

/** The request itself was at fault, and not who sent it. */
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
  /** Only this one's events go out, one by one, and its outcome after them. */
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
    const { events, bytes, whole } = journal.next(left);
    left -= bytes;
    if (events.length > 0) report.events.push({ run_id, attempt, events });
    // a large result goes alone: many at once could be more than anyone takes
    if (suspect !== null && events.length > 0) continue;
    if (outcome === null || !whole || (journal.outcomeBytes > left && report.finishes.length > 0)) continue;
    left -= journal.outcomeBytes;
    report.finishes.push({ run_id, attempt, last_n: journal.lastN, outcome });
  }
  return report;
}

function keyOf({ run_id, attempt }: { run_id: string; attempt: number }): string {
  return `${run_id}.${attempt}`;
}
