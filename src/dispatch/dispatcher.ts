import type { RunnerRow, WaitReason } from "../model/dispatch-ops.ts";
import { PortError } from "../model/port-error.ts";
import type { Demands } from "../model/run.ts";
import type { Registration, ReportRequest, RunnerPort } from "../model/runner-port.ts";
import type { StopReason } from "../model/states.ts";
import type { Change } from "../model/store.ts";
import type { RecordStore } from "../record/record-store.ts";
import { drainRunner, stopRuns } from "./by-record.ts";
import { createRemoteClock } from "./remote-clock.ts";
import { createPoll, type PollDeps, portConflict } from "./poll.ts";
import { report } from "./report.ts";
import { hashKey, runnerIdOf } from "./runner-id.ts";
import { loadSession, saveSession } from "./session-state.ts";
import { repeatEvery, type Repeating } from "./repeat-every.ts";
import { goneSessions, upload } from "./upload.ts";
import { createWaiters } from "./waiters.ts";

export interface DispatcherOptions {
  store: RecordStore;
  now: () => Date;
  leaseMs: number;
  pollHoldMs: number;
  rescueEveryMs: number;
  /** How long a run waits for a runner that could take it. */
  unmatchedMs: number;
  signAttempt: (run_id: string, attempt: number) => string;
  /** What a run was asked with, where the record keeps that sealed. */
  openSealed?: NonNullable<PollDeps["openSealed"]>;
  /** Why nothing may be started now; null: there is room. Asked with repeatEvery claim. */
  lowDisk?: () => string | null;
  /** Files that are larger are refused. */
  maxFileBytes?: number;
  /** What other processes wrote to the same database is looked for this often. */
  foreignEveryMs?: number;
  /** Called so often; what it removes is its own business. */
  retention?: { everyMs: number; prune: (signal: AbortSignal) => Promise<unknown> };
  onPartials?: (partials: ReportRequest["partials"]) => void;
  /** Told of what went wrong where nobody waits for an answer. It is tried again. */
  onFault?: (fault: unknown) => void;
}

export interface Dispatcher {
  /** The port for runners inside this process, whoever's they are. */
  port: RunnerPort;
  /** The port as the runners of this owner see it: another owner's runner is unknown to it. */
  portFor(owner: string): RunnerPort;
  stopRuns(
    run_ids: string[],
    by: string,
    reason?: StopReason,
  ): Promise<{ cancelled: string[]; stopping: string[]; untouched: string[] }>;
  /** False where there is no such runner. */
  drainRunner(runner_id: string, draining: boolean): Promise<boolean>;
  why(run_id: string): Promise<WaitReason[]>;
  listRunners(): Promise<RunnerRow[]>;
  /**
   * The store's clock, as far as it can be told without asking: rather behind, by as long as a quick answer takes. What is
   * compared with the store's times goes by it.
   */
  storeNow(): Date;
  /** How many polls wait here now. */
  readonly polls: number;
  /** Looks for work for one runner that meets these demands; without them, for repeatEvery runner that waits. */
  wake(demands?: Demands): void;
  /** Runners are heard from here on; none is lost before one whole lease from now. */
  start(): Promise<void>;
  /** Ends repeatEvery held poll and repeatEvery timer. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Parts of a lease: who waits is renewed when less than so much is left, which is looked at so often. What is left is then
 * always more than the half that a coordinator may hang before it no longer judges leases, see Rescue.
 */
const renewBelow = 0.7;
const renewEvery = 0.1;
const localOwner = "local";
const rescuedAtOnce = 500;
const defaultMaxFileBytes = 50 * 1024 * 1024;

/** Brings runs and runners together. Everything it knows is in the store; here is only who waits at the moment. */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const { store, leaseMs, lowDisk = () => null, maxFileBytes = defaultMaxFileBytes } = options;
  const onFault = options.onFault ?? ((fault) => process.emitWarning(`dispatch: ${String(fault)}`));
  const waiters = createWaiters();
  const stopping = new AbortController();
  const tickings: Repeating[] = [];
  /** What the last rescue returned, by the store's clock. */
  let before: { since: number; at: number } | null = null;
  const storeClock = createRemoteClock();
  const storeNow = () => storeClock.latest(performance.now());
  const shortages = new Map<string, string>();
  const poll = createPoll({ ...options, onFault, shortages, lowDisk, waiters, storeNow, stopped: stopping.signal });
  let looking: Promise<void> | null = null;
  let lookAgain = false;
  const unsubscribe = store.changes(notice);

  return {
    port: portOf(undefined),
    portFor: portOf,
    stopRuns: (run_ids, by, reason) => stopRuns(store, run_ids, by, reason),
    drainRunner: (runner_id, draining) => drainRunner(store, runner_id, draining),
    async why(run_id) {
      const reasons = (await store.read.why(run_id, shortages)) ?? [];
      const disk = lowDisk();
      const isAside = reasons.some(
        ({ demand }) => demand === "approval" || demand === "budget" || demand === "usage_limit",
      );
      return disk === null || isAside ? reasons : [...reasons, { demand: "disk", detail: disk }];
    },
    listRunners: () => store.read.runners(),
    storeNow() {
      const earliest = store.engine.kind === "sqlite" ? null : storeClock.earliest(performance.now());
      return earliest === null ? store.now() : new Date(earliest);
    },
    get polls() {
      return waiters.size;
    },
    wake(demands) {
      if (demands === undefined) waiters.wakeAll();
      else waiters.wakeFor(demands);
    },
    async start() {
      store.checkForeignWrites();
      await rescue();
      tickings.push(
        repeatEvery(options.rescueEveryMs, rescue, onFault),
        repeatEvery(options.foreignEveryMs ?? 250, lookAround, onFault),
        repeatEvery(leaseMs * renewEvery, renewIdle, onFault),
      );
      if (options.retention) {
        const { everyMs, prune } = options.retention;
        // soon after the start as well: one that is started anew each hour would never prune
        tickings.push(repeatEvery(everyMs, prune, onFault, Math.min(everyMs, 1000)));
      }
    },
    async stop() {
      unsubscribe();
      stopping.abort();
      await Promise.all([...tickings.splice(0).map((ticking) => ticking.stop()), looking]);
    },
  };

  function portOf(owner: string | undefined): RunnerPort {
    const mine = owner === undefined ? {} : { owner };
    return {
      async register(registration) {
        if (registration.protocol !== 1)
          throw new PortError(
            "refused",
            "This coordinator speaks version 1 of the runner protocol. Update the older of the two.",
          );
        const runner_id = runnerIdOf(registration);
        const [result] = await store.apply([
          {
            op: "register_runner",
            runner_id,
            key_hash: hashKey(registration.runner_key),
            owner: owner ?? localOwner,
            registration: withoutKey(registration),
            lease_ms: leaseMs,
          },
        ]);
        if (!result.ok) throw portConflict(result.conflict);
        // Polls of the epoch before have nothing more to wait for.
        waiters.wakeRunner(runner_id);
        const store_id = await store.storeId();
        return { runner_id, epoch: result.epoch, lease_ms: leaseMs, store_id, max_file_bytes: maxFileBytes };
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
        upload(request, content, AbortSignal.any([signal, stopping.signal]), owner, { store, maxFileBytes, lowDisk }),
      sessions: (request) => goneSessions(request, owner, store),
      loadSession: (request) => loadSession(request, owner, store),
      saveSession: (request) => saveSession(request, owner, store),
      async deregister({ runner_id, epoch }) {
        const [left] = await store.apply([{ op: "leave_runner", runner_id, epoch, ...mine }]);
        // Unknown: it has left already, and says so again.
        if (!left.ok && left.conflict !== "unknown_runner") throw portConflict(left.conflict);
        waiters.wakeRunner(runner_id);
      },
    };
  }

  function notice(change: Change): void {
    for (const demands of change.claimable) waiters.wakeFor(demands);
    for (const demands of change.resumed ?? []) waiters.wakeFor(demands, true);
    waiters.wakeRunners(change.ordered);
    if (change.foreign) lookForWork();
  }

  /** Another process wrote something. What it writes while that is looked at is looked at after that, once. */
  function lookForWork(): void {
    lookAgain = true;
    looking ??= lookAtAll().finally(() => (looking = null));
  }

  /** Only who has something to fetch is woken. */
  async function lookAtAll(): Promise<void> {
    try {
      while (lookAgain && !stopping.signal.aborted) {
        lookAgain = false;
        waiters.wakeRunners(new Set(await store.read.with_work(waiters.runnerIds)));
      }
    } catch (fault) {
      // with the next look around
      lookAgain = true;
      onFault(fault);
    }
  }

  /** Who waits in a held poll need not say so repeatEvery few seconds: there may be thousands. */
  async function renewIdle(): Promise<void> {
    const now = performance.now();
    const runner_ids = waiters.leasesEndingBefore(now + leaseMs * renewBelow);
    if (runner_ids.length === 0) return;
    try {
      await store.apply([{ op: "renew_idle", runner_ids, lease_ms: leaseMs }]);
    } catch (fault) {
      // They wait in vain once their leases are over. They fail where they ask again, or come to one who can.
      waiters.wakeRunners(new Set(waiters.leasesEndingBefore(performance.now())));
      throw fault;
    }
    waiters.renewed(runner_ids, now + leaseMs);
  }

  async function lookAround(): Promise<void> {
    store.checkForeignWrites();
    if (lookAgain) lookForWork();
  }

  async function rescue(): Promise<void> {
    while (!stopping.signal.aborted) {
      const listening = { lease_ms: leaseMs, ...(before === null ? {} : { before }) };
      const asked = performance.now();
      const [round] = await store.apply([
        { op: "rescue", unmatched_ms: options.unmatchedMs, limit: rescuedAtOnce, listening },
      ]);
      if (!round.ok) return;
      before = { since: round.since, at: round.at };
      storeClock.hear(round.at, asked, performance.now());
      if (!round.more) return;
    }
  }
}

function withoutKey({
  runner_key: _key,
  protocol: _protocol,
  ...rest
}: Registration): Omit<Registration, "runner_key" | "protocol"> {
  return rest;
}
