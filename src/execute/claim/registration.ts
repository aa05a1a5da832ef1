import type { Agent } from "../../model/agent.ts";
import { PortError } from "../../model/port-error.ts";
import type { Registered, Registration, RunnerPort } from "../../model/runner-port.ts";
import { createBackoff, sleep } from "../port/backoff.ts";
import { capFileSize } from "../collect/cap-file-size.ts";
import { startClaimLoop } from "./claim-loop.ts";
import { countDescriptors, describeShortage, roomForRuns } from "./descriptors.ts";
import type { RunnerDirectories } from "../workspace/open-directories.ts";
import { createHeldRuns } from "./held-runs.ts";
import { createIdentity } from "../port/identity.ts";
import type { Journal } from "../journal/journal.ts";
import { isLeaseOver } from "./lease-watch.ts";
import { findRunLogs, type RunLogsOptions } from "../journal/run-logs.ts";
import { portFault } from "../port/port-fault.ts";
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
  /** How long the last report and the deregistration may take once all runs have ended. */
  shutdownMs: number;
  /** Between two sweeps for directories of deleted sessions. */
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
  onNotice: (message: string, cause?: unknown) => void;
}

/** One profile registered at the coordinator, with its claims, runs and reports. */
export interface RunningRegistration {
  readonly runner_id: string;
  readonly running: number;
  /** Registers again with these agents. Runs in progress are not affected. */
  replaceAgents(agents: Agent[]): Promise<void>;
  /** Takes no new claims, gives its runs `drainMs` to finish, then stops them. */
  drain(): Promise<void>;
  /** Stops all runs now and deregisters. Idempotent, also during a drain. */
  stop(): Promise<void>;
  readonly done: Promise<void>;
}

/** How often a runner without free descriptors counts them again. */
const shortagePauseMs = 1000;

/** Waits while the coordinator is away. Rejects if another live runner has this identity. */
export async function startRegistration(
  options: RegistrationOptions,
  signal: AbortSignal,
): Promise<RunningRegistration> {
  const { times, onNotice, logs } = options;
  const { monotonic, newId } = options.supervise;
  const ending = new AbortController();
  const outages = reportOutages(options.port, onNotice);
  const { port } = outages;
  let registration = options.registration;
  let latest!: Registered;
  let isFirst = true;
  let flush = (): void => undefined;
  const identity = createIdentity(async () => {
    latest = await register(registration, outages, options, AbortSignal.any([ending.signal, signal]), isFirst);
    isFirst = false;
    flush();
    return latest;
  });
  const first = await identity.current();

  const found = findRunLogs(logs);
  const closeLog = (journal: Journal, close: () => Promise<void>): void =>
    void close().catch((error: unknown) => onNotice(`the log of run ${journal.run_id} could not be closed`, error));
  await settleInterrupted(found, options);

  const shipper = startShipper(
    {
      port,
      identity,
      asOfClaim: () => loop.asOfClaim,
      heartbeatMs: times.heartbeatMs,
      maxReportBytes: options.maxReportBytes,
      maxUnshippedBytes: options.maxUnshippedBytes,
      monotonic,
      random: options.random,
      onFault: (error, fault) => outages.report("report", error, fault),
    },
    found.map(({ journal }) => ({
      journal,
      onLost: () => closeLog(journal, journal.remove),
      onFinished: () => closeLog(journal, journal.markShipped),
    })),
  );

  flush = shipper.flush;
  const held = createHeldRuns({
    slots: () => registration.slots,
    supervise: { ...options.supervise, directories: { ...options.supervise.directories, owner: () => latest } },
    logs,
    shipper,
    upload: createUpload(port, identity),
    sessions: createSessionPort(port, identity),
    slotFreed: () => loop.slotFreed(),
    onNotice,
  });
  const maxRuns = roomForRuns(countDescriptors());
  let shortage: string | null = null;
  let isShortageReported = false;
  /** Free slots that also have enough file descriptors for a run. */
  const freeSlots = (): number => {
    shortage = null;
    const free = held.freeSlots();
    if (free <= 0) return free;
    const descriptors = countDescriptors();
    // runs taken a moment ago have not opened their files yet
    const room = Math.max(0, Math.min(roomForRuns(descriptors), maxRuns - held.running));
    if (room === 0) {
      shortage = `has free slots, but takes no run until another has ended: ${describeShortage(descriptors!)}`;
      if (!isShortageReported) onNotice(shortage);
      isShortageReported = true;
    }
    // no run here will end and free descriptors: count again soon, or the poll that wants nothing stays open
    if (room === 0 && held.running === 0) setTimeout(() => loop.slotFreed(), shortagePauseMs).unref();
    return Math.min(free, room);
  };
  const loop = startClaimLoop({
    port,
    identity,
    freeSlots,
    shortage: () => shortage,
    take: (claim) => held.take(capFileSize(claim, latest.max_file_bytes)),
    onDeclined: shipper.flush,
    dispatch: held.dispatch,
    newId,
    pollPauseMs: times.pollPauseMs,
    random: options.random,
    onFault: (error, fault) => outages.report("poll", error, fault),
  });

  const { scratch, sessionHomes } = options.supervise.directories;
  const sweep = startSessionSweep({
    port,
    identity,
    roots: [scratch, ...(sessionHomes === null ? [] : [sessionHomes])],
    isUsed: held.usesSession,
    everyMs: times.sweepMs,
    onNotice,
  });

  let wasOver = false;
  const watchLease = (): void => {
    const isOver = held.running > 0 && isLeaseOver(shipper, first.lease_ms);
    if (isOver && !wasOver)
      onNotice(
        `no report was answered for ${Math.round(shipper.silentMs)} ms: the lease has expired, and all runs are stopped`,
      );
    if (isOver) held.abortAll("lease_lost");
    wasOver = isOver;
  };
  const watch = setInterval(watchLease, Math.max(10, first.lease_ms / 8));

  async function leave(): Promise<void> {
    await held.allEnded();
    if (shipper.held > 0) shipper.flush();
    await within(times.shutdownMs, Promise.all([shipper.drained(times.shutdownMs), held.logsClosed()]));
    clearInterval(watch);
    // Nothing may reach the coordinator after the deregistration: a late registration would bring the runner back.
    // So no new call is started, and calls in flight finish first. They report their own failures.
    ending.abort();
    const inFlight = [loop.stop(), shipper.stop(), sweep.stop(), identity.settled()];
    await within(times.shutdownMs, Promise.allSettled(inFlight));
    const { runner_id, epoch } = await identity.current();
    const deregistered = port
      .deregister({ runner_id, epoch })
      .catch((error: unknown) => outages.report("deregister", error, portFault(error)));
    await within(times.shutdownMs, deregistered);
  }

  let stopped: Promise<void> | null = null;
  let finish!: () => void;
  const done = new Promise<void>((resolve) => (finish = resolve));
  const stop = (): Promise<void> => {
    loop.drain();
    held.shutDown();
    return (stopped ??= leave().finally(finish));
  };
  return {
    runner_id: first.runner_id,
    get running() {
      return held.running;
    },
    async replaceAgents(agents) {
      if (ending.signal.aborted) return;
      registration = { ...registration, agents };
      const { epoch } = await identity.current();
      await identity.renew(epoch).catch((error: unknown) => {
        // the runner is leaving and no longer needs its agents
        if (!ending.signal.aborted) throw error;
      });
    },
    async drain() {
      loop.drain();
      held.park();
      await within(times.drainMs, held.allEnded());
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
): Promise<Registered> {
  const once = { ...registration, registration_id: supervise.newId() };
  const backoff = createBackoff({ firstMs: times.pollPauseMs, longestMs: times.pollPauseMs * 10, random });
  for (;;) {
    signal.throwIfAborted();
    try {
      return await port.register(once);
    } catch (error) {
      signal.throwIfAborted();
      const fault = portFault(error);
      if (fault === "duplicate" || fault === "refused") throw error;
      // after the first registration, wait instead: the real coordinator may come back to its address
      if (isFirst && error instanceof PortError && error.conflict === "unproven") throw error;
      report("register", error, fault);
      await backoff.wait(signal);
    }
  }
}

async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController();
  await Promise.race([work.then(() => done.abort()), sleep(ms, done.signal)]);
}
