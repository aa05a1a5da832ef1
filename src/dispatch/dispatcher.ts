import type { RunnerRow, WaitReason } from "../model/dispatch-ops.ts";
import { PortError } from "../model/port-error.ts";
import type { Demands } from "../model/run.ts";
import type { Registration, ReportRequest, RunnerPort } from "../model/runner-port.ts";
import type { StopReason } from "../model/states.ts";
import type { Change } from "../model/store.ts";
import type { RecordStore } from "../record/record-store.ts";
import { drainRunner, stopRuns } from "./control.ts";
import { createRemoteClock } from "./remote-clock.ts";
import { type CreateAndHandOver, createHandOver } from "./hand-over.ts";
import { createPoll, type PollDeps, toPortError } from "./poll.ts";
import { report } from "./report.ts";
import { hashRunnerKey, createRunnerId } from "./runner-id.ts";
import { loadSession, saveSession } from "./session-state.ts";
import { repeatEvery, type RepeatedTask } from "./repeat-every.ts";
import { findDeletedSessions } from "./find-deleted-sessions.ts";
import { upload } from "./upload.ts";
import { createWaiters } from "./waiters.ts";

export interface DispatcherOptions {
  store: RecordStore;
  now: () => Date;
  leaseMs: number;
  pollHoldMs: number;
  /** The longest hold that a runner may request. */
  maxPollHoldMs?: number;
  rescueEveryMs: number;
  /** How long a run waits for a matching runner before it fails. */
  unmatchedMs: number;
  signAttempt: (run_id: string, attempt: number) => string;
  /** Decrypts the parameters and prompt of a run. */
  openSealed?: NonNullable<PollDeps["openSealed"]>;
  /**
   * Returns a description of the disk if its space is too low to start runs, otherwise null. Called for every claim.
   */
  getLowDiskReason?: () => string | null;
  /** The coordinator rejects larger files. */
  maxFileBytes?: number;
  /** How often to check for changes by other processes that use the same database. */
  otherProcessCheckMs?: number;
  /** Prunes old data periodically. */
  retention?: { everyMs: number; prune: (signal: AbortSignal) => Promise<unknown> };
  /** Resolves when the next transaction of a long request may run. */
  waitForTurn?: () => Promise<void>;
  onPartials?: (partials: ReportRequest["partials"]) => void;
  /** Reports failures of background work. The work is retried. */
  onError?: (error: unknown) => void;
}

export interface Dispatcher {
  createRun: CreateAndHandOver;
  /** The port for runners inside this process, for any owner. */
  port: RunnerPort;
  /** The port for runners of this owner. It treats runners of other owners as unknown. */
  portFor(owner: string): RunnerPort;
  stopRuns(
    run_ids: string[],
    by: string,
    reason?: StopReason,
  ): Promise<{ cancelled: string[]; stopping: string[]; untouched: string[] }>;
  /** Returns false if the runner does not exist. */
  drainRunner(runner_id: string, draining: boolean): Promise<boolean>;
  why(run_id: string): Promise<WaitReason[]>;
  listRunners(): Promise<RunnerRow[]>;
  /**
   * An estimate of the store's clock without a query. It is behind by at most the duration of a quick query. Use it for
   * times that are compared with times from the store.
   */
  storeNow(): Date;
  readonly heldPolls: number;
  /** Wakes one waiting runner that meets these demands. Without demands, wakes every waiting runner. */
  wake(demands?: Demands): void;
  /** Starts accepting runners. For one lease from now, no runner is declared lost. */
  start(): Promise<void>;
  /** Ends all held polls and timers. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Fractions of a lease. The dispatcher checks the leases of waiting runners every `renewEvery`, and renews those with less
 * than `renewBelow` left, so more than half of a lease always remains. A coordinator that stalls for longer than half a
 * lease declares no runner lost at first (see the operation Rescue).
 */
const renewBelow = 0.7;
const renewEvery = 0.1;
/**
 * The longest hold, as a multiple of the usual one. Longer holds save polls, and an idle runner costs little else.
 */
const maxHoldFactor = 12;
const localOwner = "local";
const maxRescuesPerBatch = 500;
const defaultMaxFileBytes = 50 * 1024 * 1024;

/** Assigns runs to runners. All state is in the store, except for the held polls. */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const { store, leaseMs, getLowDiskReason = () => null, maxFileBytes = defaultMaxFileBytes } = options;
  const maxPollHoldMs = options.maxPollHoldMs ?? maxHoldFactor * options.pollHoldMs;
  const onError = options.onError ?? ((error) => process.emitWarning(`dispatch: ${String(error)}`));
  const waiters = createWaiters();
  const stopController = new AbortController();
  const timers: RepeatedTask[] = [];
  /** The times of the last rescue, on the store's clock. */
  let lastRescue: { since: number; at: number } | null = null;
  const storeClock = createRemoteClock();
  const storeNow = () => storeClock.latest(performance.now());
  const shortages = new Map<string, string>();
  const poll = createPoll({
    ...options,
    maxPollHoldMs,
    onError,
    shortages,
    getLowDiskReason,
    waiters,
    storeNow,
    stopSignal: stopController.signal,
  });
  let currentCheck: Promise<void> | null = null;
  let needsCheck = false;
  const unsubscribe = store.changes(onChange);

  return {
    createRun: createHandOver({ store, waiters, getLowDiskReason }),
    port: createPort(undefined),
    portFor: createPort,
    stopRuns: (run_ids, by, reason) => stopRuns(store, run_ids, by, reason),
    drainRunner: (runner_id, draining) => drainRunner(store, runner_id, draining),
    async why(run_id) {
      const reasons = (await store.read.why(run_id, shortages)) ?? [];
      const disk = getLowDiskReason();
      const waitsForUser = reasons.some(
        ({ demand }) => demand === "approval" || demand === "budget" || demand === "usage_limit",
      );
      return disk === null || waitsForUser ? reasons : [...reasons, { demand: "disk", detail: disk }];
    },
    listRunners: () => store.read.runners(),
    storeNow() {
      const earliest = store.engine.kind === "sqlite" ? null : storeClock.earliest(performance.now());
      return earliest === null ? store.now() : new Date(earliest);
    },
    get heldPolls() {
      return waiters.size;
    },
    wake(demands) {
      if (demands === undefined) waiters.wakeAll();
      else waiters.wakeFor(demands);
    },
    async start() {
      store.notifyOfForeignCommits();
      await rescue();
      timers.push(
        repeatEvery(options.rescueEveryMs, rescue, onError),
        repeatEvery(options.otherProcessCheckMs ?? 250, checkOtherProcesses, onError),
        repeatEvery(leaseMs * renewEvery, renewIdle, onError),
      );
      if (options.retention) {
        const { everyMs, prune } = options.retention;
        // Also soon after the start; otherwise a coordinator that restarts every hour would never prune.
        timers.push(repeatEvery(everyMs, prune, onError, Math.min(everyMs, 1000)));
      }
    },
    async stop() {
      unsubscribe();
      stopController.abort();
      await Promise.all([...timers.splice(0).map((timer) => timer.stop()), currentCheck]);
    },
  };

  function createPort(owner: string | undefined): RunnerPort {
    const ownerFilter = owner === undefined ? {} : { owner };
    return {
      async register(registration) {
        if (registration.protocol !== 1)
          throw new PortError(
            "refused",
            "This coordinator supports only version 1 of the runner protocol. Update the coordinator or the runner, whichever is older.",
          );
        const runner_id = createRunnerId(registration);
        const [result] = await store.apply([
          {
            op: "register_runner",
            runner_id,
            key_hash: hashRunnerKey(registration.runner_key),
            owner: owner ?? localOwner,
            registration: omitKey(registration),
            lease_ms: leaseMs,
          },
        ]);
        if (!result.ok) throw toPortError(result.conflict);
        // Ends the polls of the previous epoch.
        waiters.wakeRunner(runner_id);
        const store_id = await store.storeId();
        return {
          runner_id,
          epoch: result.epoch,
          lease_ms: leaseMs,
          store_id,
          max_file_bytes: maxFileBytes,
          max_hold_ms: maxPollHoldMs,
        };
      },
      poll: (request, signal) => poll(request, signal, owner),
      report: (request) =>
        report(request, owner, {
          store,
          now: options.now,
          leaseMs,
          onPartials: options.onPartials ?? (() => undefined),
        }),
      upload: (request, content, signal) =>
        upload(request, content, AbortSignal.any([signal, stopController.signal]), owner, {
          store,
          maxFileBytes,
          getLowDiskReason,
        }),
      sessions: (request) => findDeletedSessions(request, owner, store),
      loadSession: (request) => loadSession(request, owner, store),
      saveSession: (request) => saveSession(request, owner, { apply: store.apply, waitForTurn: options.waitForTurn }),
      async deregister({ runner_id, epoch }) {
        const [deregistered] = await store.apply([{ op: "leave_runner", runner_id, epoch, ...ownerFilter }]);
        // An unknown runner has already deregistered; this is a repeated request.
        if (!deregistered.ok && deregistered.conflict !== "unknown_runner") throw toPortError(deregistered.conflict);
        waiters.wakeRunner(runner_id);
      },
    };
  }

  function onChange(change: Change): void {
    for (const demands of change.claimable) waiters.wakeFor(demands);
    for (const demands of change.resumed ?? []) waiters.wakeFor(demands, true);
    waiters.wakeRunners(change.runnersWithOrders);
    if (change.fromOtherProcess) checkForWork();
  }

  /** Called when another process has committed. Commits during a check lead to one more check. */
  function checkForWork(): void {
    needsCheck = true;
    currentCheck ??= checkAll().finally(() => (currentCheck = null));
  }

  /** Wakes only the runners that have work. */
  async function checkAll(): Promise<void> {
    try {
      while (needsCheck && !stopController.signal.aborted) {
        needsCheck = false;
        waiters.wakeRunners(new Set(await store.read.runners_with_work(waiters.runnerIds)));
      }
    } catch (error) {
      // The next periodic check tries again.
      needsCheck = true;
      onError(error);
    }
  }

  /** Renews the leases of waiting runners, so that thousands of idle runners need not send heartbeats. */
  async function renewIdle(): Promise<void> {
    const now = performance.now();
    const runner_ids = waiters.findLeasesEndingBefore(now + leaseMs * renewBelow);
    if (runner_ids.length === 0) return;
    try {
      await store.apply([{ op: "renew_idle", runner_ids, lease_ms: leaseMs }]);
    } catch (error) {
      // The waiting runners' leases will expire, so make them poll again: this coordinator responds with an error, or another
      // one renews.
      waiters.wakeRunners(new Set(waiters.findLeasesEndingBefore(performance.now())));
      throw error;
    }
    waiters.extendLeases(runner_ids, now + leaseMs);
  }

  async function checkOtherProcesses(): Promise<void> {
    store.notifyOfForeignCommits();
    if (needsCheck) checkForWork();
  }

  async function rescue(): Promise<void> {
    while (!stopController.signal.aborted) {
      const listening = { lease_ms: leaseMs, ...(lastRescue === null ? {} : { previous: lastRescue }) };
      const sentAt = performance.now();
      const [round] = await store.apply([
        { op: "rescue", unmatched_ms: options.unmatchedMs, limit: maxRescuesPerBatch, listening },
      ]);
      if (!round.ok) return;
      lastRescue = { since: round.since, at: round.at };
      storeClock.addReading(round.at, sentAt, performance.now());
      if (!round.more) return;
    }
  }
}

function omitKey({
  runner_key: _key,
  protocol: _protocol,
  ...rest
}: Registration): Omit<Registration, "runner_key" | "protocol"> {
  return rest;
}
