import { createHash, randomFillSync } from "node:crypto";
import { rmSync } from "node:fs";
import { homedir, hostname } from "node:os";
import { join } from "node:path";
import { type LoadedProfile, toRegistrationExecutor } from "./define/profiles.ts";
import { listProtectedPaths } from "./define/protected-paths.ts";
import { findCheckout } from "./define/checkout.ts";
import { type LazySchemas, createLazySchemas } from "./compose/lazy-schemas.ts";
import { hasRoomForOneRun, countDescriptors, describeShortage } from "./execute/claim/descriptors.ts";
import { startLogSweep } from "./execute/journal/log-sweep.ts";
import { uploadTimes } from "./execute/collect/keep-files.ts";
import {
  type RegistrationOptions,
  type RunningRegistration,
  startRegistration,
  type Times,
} from "./execute/claim/registration.ts";
import type { RunProgress } from "./execute/supervise/supervise-options.ts";
import { lockRunner, readPlaceId, readRunnerKey } from "./execute/claim/runner-lock.ts";
import type { Agent } from "./model/agent.ts";
import { HostError, RequestError } from "./model/errors.ts";
import { createIds } from "./model/ids.ts";
import type { InProcessOptions } from "./model/in-process-options.ts";
import type { StartCommand } from "./model/process.ts";
import type { Registration, RunnerPort } from "./model/runner-port.ts";
import {
  homesDirectory,
  locksDirectory,
  logsDirectory,
  recordDirectory,
  runnerRecordDirectory,
  runsDirectory,
  tmpDirectory,
  workDirectory,
} from "./model/state-layout.ts";
import type { Environment } from "./model/environment.ts";
import { sweepCgroups } from "./process/cgroup.ts";
import { withProtection } from "./process/protected-paths.ts";
import { killOrphans } from "./process/orphans.ts";
import { start } from "./process/start.ts";
import { getCurrentOwner, isOwnerAlive } from "./record/audit/owner.ts";
import type { RunnerFacts } from "./record/matching.ts";
import { createRedactor } from "./redact/redactor.ts";
import { createExecutor } from "./compose/create-executor.ts";
import { saveShortLivedRunner } from "./compose/short-lived-runners.ts";

export { builtInExecutors } from "./compose/create-executor.ts";

/** A runner has one registration per profile and reaches its coordinator through `port`. */
export interface RunnerOptions {
  port: RunnerPort;
  profiles: readonly RunnerProfile[];
  stateDirectory: string;
  /** The working directory of runs without a project_dir. */
  projectDir: string;
  /** Distinguishes runners with the same host and directory. */
  name?: string;
  /**
   * For a runner that serves a single command. It takes only runs that are pinned to it, does not offer its agents to
   * others, and removes its directory at the end. compose/sweep-short-lived.ts cleans up after a killed one.
   */
  shortLived?: boolean;
  /** The coordinator's URL for Drover commands inside runs. Without it, they get no URL and no token. */
  apiUrl?: string;
  /** Overrides the number of slots of each profile. */
  slots?: number;
  env: Environment;
  maxOutputKb: number;
  /** The setting `provider` of drover.yaml. */
  provider?: string | null;
  defaultTimeoutSeconds?: number;
  /** How long to keep the logs of finished autonomous runs. Default: 30. */
  keepLogsDays?: number;
  inProcess?: InProcessOptions;
  times?: Partial<Times>;
  start?: StartCommand;
  /** When this is aborted, `stop` kills programs and executors immediately instead of waiting for them. */
  hurry?: AbortSignal;
  /** Receives messages for the operator. `cause` may contain a stack trace. */
  onNotice: (message: string, cause?: unknown) => void;
  /** Called when a run starts and when it ends. */
  onProgress?: (progress: RunProgress) => void;
}

export interface RunnerProfile {
  loaded: LoadedProfile;
  agents: Agent[];
}

export interface Runner {
  readonly registrations: readonly RunningRegistration[];
  /** The properties of each registration that the demands of runs are matched against. */
  readonly facts: readonly RunnerFacts[];
  /** How many runs are active. */
  readonly running: number;
  /** How long `drain` waits for active runs. */
  readonly drainMs: number;
  replaceAgents(profile: string, agents: Agent[]): Promise<void>;
  /** Claims no more runs. Runs in progress get some time to finish; then they are stopped and returned to the queue. */
  drain(): Promise<void>;
  stop(): Promise<void>;
  readonly done: Promise<void>;
}

const defaultTimes: Times = {
  heartbeatMs: 3000,
  pollPauseMs: 500,
  drainMs: 30_000,
  shutdownMs: 900,
  sweepMs: 60_000,
};

export async function startRunner(runnerOptions: RunnerOptions): Promise<Runner> {
  const protection = listProtectedPaths(runnerOptions.stateDirectory, runnerOptions.env);
  const options = { ...runnerOptions, start: withProtection(runnerOptions.start ?? start, protection) };
  const stopController = new AbortController();
  const schemas = createLazySchemas();
  sweepCgroups();
  const descriptors = countDescriptors();
  if (!hasRoomForOneRun(descriptors))
    throw new HostError({
      code: "DROVER-EXE-010",
      message: `The runner cannot run anything on this host: ${describeShortage(descriptors!)}.`,
      next: "Start the runner again with the higher limit.",
    });
  const openedProfiles: Awaited<ReturnType<typeof openProfile>>[] = [];
  const stop = async (): Promise<void> => {
    stopController.abort();
    await Promise.all(openedProfiles.map(({ registration }) => registration.stop()));
  };
  try {
    for (const profile of options.profiles)
      openedProfiles.push(await openProfile(profile, options, schemas, stopController.signal));
  } catch (error) {
    await stop();
    for (const { release } of openedProfiles) release();
    throw error;
  }
  const logSweep = startLogSweep({
    directory: logsDirectory(recordDirectory(options.stateDirectory)),
    keepMs: (options.keepLogsDays ?? 30) * 24 * 3_600_000,
    everyMs: 3_600_000,
    now,
    onNotice: options.onNotice,
  });
  const done = Promise.all(openedProfiles.map(({ registration }) => registration.done)).then(async () => {
    await logSweep.stop();
    for (const { release } of openedProfiles) release();
    await schemas.stop();
  });
  return {
    registrations: openedProfiles.map(({ registration }) => registration),
    facts: openedProfiles.map(({ facts }) => facts),
    get running() {
      return openedProfiles.reduce((sum, { registration }) => sum + registration.running, 0);
    },
    drainMs: { ...defaultTimes, ...options.times }.drainMs,
    async replaceAgents(name, agents) {
      await Promise.all(
        openedProfiles
          .filter(({ profile }) => profile === name)
          .map(({ registration }) => registration.replaceAgents(agents)),
      );
    },
    async drain() {
      await Promise.all(openedProfiles.map(({ registration }) => registration.drain()));
      await done;
    },
    async stop() {
      await stop();
      await done;
    },
    done,
  };
}

async function openProfile(
  { loaded, agents }: RunnerProfile,
  options: RunnerOptions & { start: StartCommand },
  schemas: LazySchemas,
  signal: AbortSignal,
) {
  const { profile, name: executor_profile } = loaded;
  const runner = toRunnerName(executor_profile, options);
  const directory = runnerRecordDirectory(recordDirectory(options.stateDirectory), runner);
  const owner = getCurrentOwner();
  const lock = lockRunner(directory, owner, isOwnerAlive);
  const release = (): void => {
    if (options.shortLived) rmSync(directory, { recursive: true, force: true });
    else lock.release();
  };
  try {
    if (options.shortLived)
      saveShortLivedRunner(directory, { name: options.name ?? "", projectDir: options.projectDir, loaded });
    const redactor = createRedactor({ variables: options.env });
    const executor = await createExecutor(loaded, options, redactor, schemas);
    const registrationOptions: RegistrationOptions = {
      port: options.port,
      registration: {
        protocol: 1,
        runner_key: readRunnerKey(directory),
        ...(options.name === undefined ? {} : { name: options.name }),
        hostname: hostname(),
        place_id: readPlaceId(recordDirectory(options.stateDirectory)),
        project_dir: options.projectDir,
        executor_profile,
        executor: { ...toRegistrationExecutor(profile), can: executor.can },
        tags: profile.tags,
        require_matching_tags: profile.require_matching_tags,
        agents: options.shortLived ? [] : agents,
        ...(options.shortLived ? { only_pinned: true } : {}),
        slots: options.slots ?? profile.slots,
        ...(options.env["DROVER_AGENT"] ? { only_agent: options.env["DROVER_AGENT"] } : {}),
      },
      logs: {
        directory: logsDirectory(recordDirectory(options.stateDirectory)),
        runner,
        now,
        memoryBytes: 1024 * 1024,
        maxBytes: 256 * 1024 * 1024,
      },
      supervise: {
        executor,
        runnerDirectory: loaded.directory,
        directories: {
          projectDirectory: options.projectDir,
          roots: profile.project_roots,
          home: options.env["HOME"] ?? homedir(),
          sessionHomes: profile.home === "session" ? homesDirectory(runsDirectory(options.stateDirectory)) : null,
          scratch: workDirectory(runsDirectory(options.stateDirectory)),
          // Keep it short: the path of a socket in it has at most 107 bytes.
          tmpRoot: join(tmpDirectory(runsDirectory(options.stateDirectory)), runner.slice(-12)),
          stateDirectory: options.stateDirectory,
          runsDirectory: runsDirectory(options.stateDirectory),
        },
        apiUrl: options.apiUrl ?? null,
        limits: {
          timeout_seconds: profile.timeout_seconds,
          idle_timeout_seconds: profile.idle_timeout_seconds,
          jobTimeoutSeconds: readSeconds(options.env, "JOB_TIMEOUT_SECONDS"),
          defaultTimeoutSeconds: options.defaultTimeoutSeconds,
        },
        variables: { allowed: profile.allow_env, env: options.env },
        start: options.start,
        startOptions: {
          isolation: profile.isolation ?? "auto",
          environment: { mode: "merge", allow: [...profile.env_from, ...(executor.variables ?? [])] },
          parentEnvironment: options.env,
          uncounted: { folders: [options.stateDirectory] },
          ...(options.hurry === undefined ? {} : { hurry: options.hurry }),
          ...(profile.leftovers === undefined ? {} : { leftovers: profile.leftovers }),
        },
        owner,
        isAlive: isOwnerAlive,
        lockDirectory: locksDirectory(recordDirectory(options.stateDirectory)),
        uploads: uploadTimes,
        random: Math.random,
        findCheckout,
        redactor,
        redactorWith: (values) => createRedactor({ variables: options.env, values }),
        newId: createIds(Date.now, (bytes) => void randomFillSync(bytes)),
        now,
        monotonic: () => performance.now(),
        outputDelayMs: 50,
        onFinishTimeoutMs: 60_000,
        onNotice: options.onNotice,
        onProgress: options.onProgress,
      },
      times: { ...defaultTimes, ...readPollPause(options.env), ...options.times },
      maxReportBytes: 1024 * 1024,
      maxUnshippedBytes: 8 * 1024 * 1024,
      random: Math.random,
      killOrphans,
      onNotice: options.onNotice,
    };
    const registration = await startRegistration(registrationOptions, signal);
    return {
      profile: executor_profile,
      registration,
      facts: toRunnerFacts(registration.runner_id, registrationOptions.registration),
      release,
    };
  } catch (error) {
    release();
    throw error;
  }
}

function toRunnerFacts(runner_id: string, registration: Registration): RunnerFacts {
  const { place_id = null, only_pinned = false } = registration;
  return { ...registration, runner_id, place_id, only_pinned, executor_type: registration.executor.type };
}

const now = (): Date => new Date();

/** A file name for the runner that stays the same across restarts. It depends on the same inputs as the runner_id. */
function toRunnerName(profile: string, { name, projectDir }: RunnerOptions): string {
  const hash = createHash("sha256")
    .update(JSON.stringify([hostname(), projectDir, profile, name ?? null]))
    .digest("hex");
  return `${profile.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 40)}-${hash.slice(0, 12)}`;
}

/** Reads the pause between attempts to reach the coordinator. */
function readPollPause(env: RunnerOptions["env"]): Pick<Times, "pollPauseMs"> | undefined {
  const seconds = readSeconds(env, "POLL_INTERVAL_SECONDS");
  return seconds === undefined ? undefined : { pollPauseMs: seconds * 1000 };
}

function readSeconds(env: RunnerOptions["env"], name: string): number | undefined {
  const text = env[name];
  if (text === undefined || text === "") return undefined;
  const seconds = Number(text);
  if (Number.isFinite(seconds) && seconds > 0) return seconds;
  throw new RequestError({
    code: "DROVER-USE-005",
    message: `${name} must be a positive number of seconds, not ${JSON.stringify(text)}.`,
    field: name,
    next: "Set it to a positive number, or unset it.",
  });
}
