import { createHash, randomFillSync } from "node:crypto";
import { rmSync } from "node:fs";
import { homedir, hostname } from "node:os";
import { join } from "node:path";
import { type LoadedProfile, toRegistrationExecutor } from "./define/profiles.ts";
import { protectedPaths } from "./define/protected-paths.ts";
import { findCheckout } from "./define/checkout.ts";
import { type LazySchemas, lazySchemas } from "./compose/lazy-schemas.ts";
import { hasRoomForOneRun, countDescriptors, describeShortage } from "./execute/claim/descriptors.ts";
import { startLogSweep } from "./execute/journal/log-sweep.ts";
import { uploadTimes } from "./execute/collect/keep-files.ts";
import {
  type RegistrationOptions,
  type RunningRegistration,
  startRegistration,
  type Times,
} from "./execute/claim/registration.ts";
import { lockRunner, placeId, runnerKey } from "./execute/claim/runner-lock.ts";
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
  runnerDirectory,
  runsDirectory,
  tmpDirectory,
  workDirectory,
} from "./model/state-layout.ts";
import type { Environment } from "./model/environment.ts";
import { sweepCgroups } from "./process/cgroup.ts";
import { protectFromAll } from "./process/protected-paths.ts";
import { killOrphans } from "./process/orphans.ts";
import { start } from "./process/start.ts";
import { currentOwner, ownerIsAlive } from "./record/audit/owner.ts";
import type { RunnerFacts } from "./record/matching.ts";
import { createRedactor } from "./redact/redactor.ts";
import { createExecutor } from "./compose/create-executor.ts";
import { noteShortLived } from "./compose/short-lived-runners.ts";

export { builtInExecutors } from "./compose/create-executor.ts";

/** A runner: one registration for each profile, over whatever port it is given. */
export interface RunnerOptions {
  port: RunnerPort;
  profiles: readonly RunnerProfile[];
  stateDirectory: string;
  /** Where runs work that name no project_dir. */
  projectDir: string;
  /** Tells runners of one host and directory apart. */
  name?: string;
  /**
   * There for a single command: takes only runs that are pinned to it, offers its agents to nobody else, and leaves
   * nothing behind. compose/sweep-short-lived.ts cleans up after one that was killed.
   */
  shortLived?: boolean;
  /** Of the coordinator, for Drover commands inside its runs. Without it they get no address and no token. */
  apiUrl?: string;
  /** In place of each profile's own number. */
  slots?: number;
  env: Environment;
  maxOutputKb: number;
  /** `provider` of drover.yaml. */
  provider?: string | null;
  defaultTimeoutSeconds?: number;
  /** How long the logs of autonomous runs stay after they have finished: 30 unless given. */
  keepLogsDays?: number;
  inProcess?: InProcessOptions;
  times?: Partial<Times>;
  start?: StartCommand;
  /** Once aborted, a stop waits for nothing: programs and executors are killed at once. */
  hurry?: AbortSignal;
  /** Whatever an operator should see. `cause` may hold a stack. */
  onNotice: (message: string, cause?: unknown) => void;
}

export interface RunnerProfile {
  loaded: LoadedProfile;
  agents: Agent[];
}

export interface Runner {
  readonly registrations: readonly RunningRegistration[];
  /** What runs' demands are compared with, for each registration. */
  readonly facts: readonly RunnerFacts[];
  replaceAgents(profile: string, agents: Agent[]): Promise<void>;
  /** No new claims; what runs gets its time, then is stopped and goes back at no cost. */
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

export async function startRunner(given: RunnerOptions): Promise<Runner> {
  const protection = protectedPaths(given.stateDirectory, given.env);
  const options = { ...given, start: protectFromAll(given.start ?? start, protection) };
  const giveUp = new AbortController();
  const schemas = lazySchemas();
  sweepCgroups();
  const descriptors = countDescriptors();
  if (!hasRoomForOneRun(descriptors))
    throw new HostError({
      code: "DROVER-EXE-010",
      message: `A runner cannot run anything here: ${describeShortage(descriptors!)}.`,
      next: "Raise the limit with `ulimit -n 1024`, then start it again.",
    });
  const opened: Awaited<ReturnType<typeof openProfile>>[] = [];
  const stop = async (): Promise<void> => {
    giveUp.abort();
    await Promise.all(opened.map(({ registration }) => registration.stop()));
  };
  try {
    for (const profile of options.profiles) opened.push(await openProfile(profile, options, schemas, giveUp.signal));
  } catch (error) {
    await stop();
    for (const { release } of opened) release();
    throw error;
  }
  const logs = startLogSweep({
    directory: logsDirectory(recordDirectory(options.stateDirectory)),
    keepMs: (options.keepLogsDays ?? 30) * 24 * 3_600_000,
    everyMs: 3_600_000,
    now,
    onNotice: options.onNotice,
  });
  const done = Promise.all(opened.map(({ registration }) => registration.done)).then(async () => {
    await logs.stop();
    for (const { release } of opened) release();
    await schemas.stop();
  });
  return {
    registrations: opened.map(({ registration }) => registration),
    facts: opened.map(({ facts }) => facts),
    async replaceAgents(name, agents) {
      await Promise.all(
        opened.filter(({ profile }) => profile === name).map(({ registration }) => registration.replaceAgents(agents)),
      );
    },
    async drain() {
      await Promise.all(opened.map(({ registration }) => registration.drain()));
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
  const runner = identityOf(executor_profile, options);
  const directory = runnerDirectory(recordDirectory(options.stateDirectory), runner);
  const owner = currentOwner();
  const lock = lockRunner(directory, owner, ownerIsAlive);
  const release = (): void => {
    if (options.shortLived) rmSync(directory, { recursive: true, force: true });
    else lock.release();
  };
  try {
    if (options.shortLived)
      noteShortLived(directory, { name: options.name ?? "", projectDir: options.projectDir, loaded });
    const redactor = createRedactor({ variables: options.env });
    const executor = await createExecutor(loaded, options, redactor, schemas);
    const registrationOptions: RegistrationOptions = {
      port: options.port,
      registration: {
        protocol: 1,
        runner_key: runnerKey(directory),
        ...(options.name === undefined ? {} : { name: options.name }),
        hostname: hostname(),
        place_id: placeId(recordDirectory(options.stateDirectory)),
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
          projectDir: options.projectDir,
          roots: profile.project_roots,
          home: options.env["HOME"] ?? homedir(),
          sessionHomes: profile.home === "session" ? homesDirectory(runsDirectory(options.stateDirectory)) : null,
          scratch: workDirectory(runsDirectory(options.stateDirectory)),
          // short: a socket in there has a path of 107 characters at most
          tmpRoot: join(tmpDirectory(runsDirectory(options.stateDirectory)), runner.slice(-12)),
          stateDirectory: options.stateDirectory,
          runs: runsDirectory(options.stateDirectory),
        },
        apiUrl: options.apiUrl ?? null,
        limits: {
          timeout_seconds: profile.timeout_seconds,
          idle_timeout_seconds: profile.idle_timeout_seconds,
          jobTimeoutSeconds: secondsIn(options.env, "JOB_TIMEOUT_SECONDS"),
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
        isAlive: ownerIsAlive,
        locks: locksDirectory(recordDirectory(options.stateDirectory)),
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
      },
      times: { ...defaultTimes, ...pollPause(options.env), ...options.times },
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
      facts: factsOf(registration.runner_id, registrationOptions.registration),
      release,
    };
  } catch (error) {
    release();
    throw error;
  }
}

function factsOf(runner_id: string, registration: Registration): RunnerFacts {
  const { place_id = null, only_pinned = false } = registration;
  return { ...registration, runner_id, place_id, only_pinned, executor_type: registration.executor.type };
}

const now = (): Date => new Date();

/** Stable over restarts, and a file name: the same things that the coordinator makes a runner_id of. */
function identityOf(profile: string, { name, projectDir }: RunnerOptions): string {
  const hash = createHash("sha256")
    .update(JSON.stringify([hostname(), projectDir, profile, name ?? null]))
    .digest("hex");
  return `${profile.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 40)}-${hash.slice(0, 12)}`;
}

/** While the coordinator is away, between two tries. */
function pollPause(env: RunnerOptions["env"]): Pick<Times, "pollPauseMs"> | undefined {
  const seconds = secondsIn(env, "POLL_INTERVAL_SECONDS");
  return seconds === undefined ? undefined : { pollPauseMs: seconds * 1000 };
}

function secondsIn(env: RunnerOptions["env"], name: string): number | undefined {
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
