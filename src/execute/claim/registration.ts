import type { Agent } from "../../model/agent.ts";
import { PortError } from "../../model/port-error.ts";
import type { RegistrationResult, Registration, RunnerPort } from "../../model/runner-port.ts";
import { createBackoff, sleep } from "../port/backoff.ts";
import { capFileSize } from "../collect/cap-file-size.ts";
import { startClaimLoop } from "./claim-loop.ts";
import { countDescriptors, type Descriptors, describeShortage, countPossibleRuns } from "./descriptors.ts";
import type { RunnerDirectories } from "../workspace/open-directories.ts";
import { createActiveRuns } from "./active-runs.ts";
import { createIdentity } from "../port/identity.ts";
import type { Journal } from "../journal/journal.ts";
import { isUnansweredFor } from "./lease-expiry.ts";
import { findRunLogs, type RunLogsOptions } from "../journal/run-logs.ts";
import { classifyPortError } from "../port/port-failure.ts";
import { createSessionPort } from "../sessions/session-port.ts";
import { settleInterrupted } from "./settle-interrupted.ts";
import { startShipper } from "../journal/shipper.ts";
import type { SuperviseOptions } from "../supervise/supervise-options.ts";
import { reportOutages, type OutageReporter } from "../port/report-outages.ts";
import { createUpload } from "../collect/upload.ts";
import { startSessionSweep } from "../workspace/session-sweep.ts";

export interface Times {
  heartbeatMs: number;
  pollPauseMs: number;
  drainMs: number;
  /** The limit for each step of a shutdown once all runs have ended: last report, calls in flight, deregistration. */
  shutdownMs: number;
  /** The time between two sweeps for directories of deleted sessions. */
  sweepMs: number;
}

export interface RegistrationOptions {
  port: RunnerPort;
  registration: Registration;
  logs: RunLogsOptions;
  supervise: Omit<SuperviseOptions, "directories"> & { directories: Omit<RunnerDirectories, "owner"> };
  times: Times;
  maxReportBytes: number;
  maxUnshippedBytes: number;
  random: () => number;
  killOrphans: (executionIds: string[]) => Promise<unknown>;
  /** Counts the file descriptors of this process. */
  countDescriptors?: () => Descriptors | null;
  onNotice: (message: string, cause?: unknown) => void;
}

/** One profile registered at the coordinator, with its claims, runs and reports. */
export interface RunningRegistration {
  readonly runner_id: string;
  readonly running: number;
  /** Registers again with these agents. Runs in progress are not affected. */
  replaceAgents(agents: Agent[]): Promise<void>;
  /** Takes no new claims, parks waiting runs, gives the others `drainMs` to finish, and stops those that remain. */
  drain(): Promise<void>;
  /** Parks waiting runs, stops all others now, and deregisters. Idempotent. Cuts a drain short. */
  stop(): Promise<void>;
  readonly done: Promise<void>;
}

/** How soon a runner checks again after it took no runs: few file descriptors were free, or a report was unanswered. */
const shortagePauseMs = 1000;

/** Registers, and retries while the coordinator is unreachable. Rejects if another live runner has this identity. */
export async function startRegistration(
  options: RegistrationOptions,
  signal: AbortSignal,
): Promise<RunningRegistration> {
  const { times, onNotice, logs } = options;
  const { monotonic, newId } = options.supervise;
  const stopController = new AbortController();
  const outages = reportOutages(options.port, options.registration.executor_profile, onNotice);
  const { port } = outages;
  let registration = options.registration;
  let latest!: RegistrationResult;
  let isFirst = true;
  let flush = (): void => undefined;
  let watchLatestLease = (): void => undefined;
  const identity = createIdentity(async () => {
    latest = await register(registration, outages, options, AbortSignal.any([stopController.signal, signal]), isFirst);
    isFirst = false;
    flush();
    watchLatestLease();
    return latest;
  });
  const first = await identity.current();

  const runLogs = findRunLogs(logs);
  const closeLog = (journal: Journal, close: () => Promise<void>): void =>
    void close().catch((error: unknown) => onNotice(`the log of run ${journal.run_id} could not be closed`, error));
  await settleInterrupted(runLogs, options);

  const shipper = startShipper(
    {
      port,
      identity,
      lastClosedClaimId: () => loop.lastClosedClaimId,
      heartbeatMs: times.heartbeatMs,
      maxReportBytes: options.maxReportBytes,
      maxUnshippedBytes: options.maxUnshippedBytes,
      monotonic,
      random: options.random,
      onFailure: (error, failure) => outages.report("report", error, failure),
    },
    runLogs.map(({ journal }) => ({
      journal,
      onLost: () => closeLog(journal, journal.remove),
      onFinished: () => closeLog(journal, journal.markShipped),
    })),
  );

  flush = shipper.flush;
  const activeRuns = createActiveRuns({
    slots: () => registration.slots,
    supervise: { ...options.supervise, directories: { ...options.supervise.directories, owner: () => latest } },
    logs,
    shipper,
    upload: createUpload(port, identity),
    sessions: createSessionPort(port, identity),
    onSlotFreed: () => loop.onSlotFreed(),
    onNotice,
  });
  const countOpen = options.countDescriptors ?? countDescriptors;
  const maxRuns = countPossibleRuns(countOpen());
  let shortage: string | null = null;
  let isShortageReported = false;
  /**
   * Counts the runs to ask for: the free slots, limited by file descriptors, and none while a report is unanswered. Sets
   * `shortage` to the reason for asking for none.
   */
  const countFreeSlots = (): number => {
    shortage = null;
    const free = activeRuns.countFreeSlots();
    if (free <= 0) return free;
    // A run taken in the second half of an unanswered lease would soon be stopped with the others.
    if (shipper.shipmentCount > 0 && isUnansweredFor(shipper, latest.lease_ms / 2)) {
      shortage = `takes no run until a report is answered; none was answered for ${Math.round(shipper.silentMs)} ms`;
      setTimeout(() => loop.onSlotFreed(), shortagePauseMs).unref();
      return 0;
    }
    const descriptors = countOpen();
    // Runs taken a moment ago have not opened their files yet.
    const room = Math.max(0, Math.min(countPossibleRuns(descriptors), maxRuns - activeRuns.running));
    if (room === 0) {
      shortage = `has free slots, but takes no run until file descriptors are free: ${describeShortage(descriptors!)}`;
      if (!isShortageReported) onNotice(`the runner of profile ${registration.executor_profile} ${shortage}`);
      isShortageReported = true;
    }
    // Descriptors for some of the free slots are still too few: each run that ends would bring another notice.
    if (room >= free) isShortageReported = false;
    // No run of this runner will end and free descriptors. Count again soon, or the poll that asks for no runs stays open.
    if (room === 0 && activeRuns.running === 0) setTimeout(() => loop.onSlotFreed(), shortagePauseMs).unref();
    return Math.min(free, room);
  };
  const loop = startClaimLoop({
    port,
    identity,
    countFreeSlots,
    getShortage: () => shortage,
    startRun: (claim) => activeRuns.startRun(capFileSize(claim, latest.max_file_bytes)),
    onDeclined: shipper.flush,
    dispatch: activeRuns.dispatch,
    newId,
    pollPauseMs: times.pollPauseMs,
    random: options.random,
    onFailure: (error, failure) => outages.report("poll", error, failure),
  });

  const { scratch, sessionHomes } = options.supervise.directories;
  const sweep = startSessionSweep({
    port,
    identity,
    roots: [scratch, ...(sessionHomes === null ? [] : [sessionHomes])],
    isUsed: activeRuns.usesSession,
    everyMs: times.sweepMs,
    onNotice,
  });

  let wasExpired = false;
  const watchLease = (): void => {
    const isExpired = activeRuns.running > 0 && isUnansweredFor(shipper, latest.lease_ms);
    if (isExpired && !wasExpired)
      onNotice(
        `no report was answered for ${Math.round(shipper.silentMs)} ms: the lease has expired, and all runs were stopped`,
      );
    if (isExpired) activeRuns.abortAll("lease_lost");
    wasExpired = isExpired;
  };
  let leaseTimer: NodeJS.Timeout | undefined;
  watchLatestLease = (): void => {
    clearInterval(leaseTimer);
    if (!stopController.signal.aborted) leaseTimer = setInterval(watchLease, Math.max(10, latest.lease_ms / 8));
  };
  watchLatestLease();

  async function shutDown(): Promise<void> {
    await activeRuns.waitForRuns();
    if (shipper.shipmentCount > 0) shipper.flush();
    await waitAtMost(
      times.shutdownMs,
      Promise.all([shipper.waitUntilDrained(times.shutdownMs), activeRuns.waitForLogs()]),
    );
    // Nothing may reach the coordinator after the deregistration: a late registration would bring the runner back.
    // So no new call is started, and calls in flight finish first. They report their own failures.
    stopController.abort();
    clearInterval(leaseTimer);
    const inFlight = [loop.stop(), shipper.stop(), sweep.stop(), identity.waitForRenewal()];
    await waitAtMost(times.shutdownMs, Promise.allSettled(inFlight));
    const { runner_id, epoch } = await identity.current();
    const deregistered = port
      .deregister({ runner_id, epoch })
      .catch((error: unknown) => outages.report("deregister", error, classifyPortError(error)));
    await waitAtMost(times.shutdownMs, deregistered);
  }

  let stopResult: Promise<void> | null = null;
  let finish!: () => void;
  const done = new Promise<void>((resolve) => (finish = resolve));
  const stop = (): Promise<void> => {
    loop.drain();
    activeRuns.shutDown();
    return (stopResult ??= shutDown().finally(finish));
  };
  return {
    runner_id: first.runner_id,
    get running() {
      return activeRuns.running;
    },
    async replaceAgents(agents) {
      if (stopController.signal.aborted) return;
      registration = { ...registration, agents };
      const { epoch } = await identity.current();
      await identity.renew(epoch).catch((error: unknown) => {
        // A runner that is stopping no longer needs its agents.
        if (!stopController.signal.aborted) throw error;
      });
    },
    async drain() {
      loop.drain();
      activeRuns.park();
      await waitAtMost(times.drainMs, activeRuns.waitForRuns());
      await stop();
    },
    stop,
    done,
  };
}

async function register(
  registration: Registration,
  { port, report }: OutageReporter,
  { times, random, supervise }: RegistrationOptions,
  signal: AbortSignal,
  isFirst: boolean,
): Promise<RegistrationResult> {
  const request = { ...registration, registration_id: supervise.newId() };
  const backoff = createBackoff({ firstMs: times.pollPauseMs, maxMs: times.pollPauseMs * 10, random });
  for (;;) {
    signal.throwIfAborted();
    try {
      return await port.register(request);
    } catch (error) {
      signal.throwIfAborted();
      const failure = classifyPortError(error);
      if (failure === "duplicate" || failure === "refused") throw error;
      // This server does not prove that it knows the token, so it is not our coordinator. At the start that is an error.
      // Later, keep retrying: the coordinator may return to its address.
      if (isFirst && error instanceof PortError && error.conflict === "unproven") throw error;
      report("register", error, failure);
      await backoff.wait(signal);
    }
  }
}

async function waitAtMost(ms: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController();
  await Promise.race([work.then(() => done.abort()), sleep(ms, done.signal)]);
}
