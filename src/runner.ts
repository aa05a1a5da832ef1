import { createHash, randomFillSync } from "node:crypto";
import { homedir, hostname } from "node:os";
import { join } from "node:path";
import { type LoadedProfile, toRegistrationExecutor } from "./define/profiles.ts";
import { type LazySchemas, lazySchemas } from "./lazy-schemas.ts";
import { uploadTimes } from "./execute/keep-files.ts";
import {
  type RegistrationOptions,
  type RunningRegistration,
  startRegistration,
  type Times,
} from "./execute/registration.ts";
import { lockRunner, runnerKey } from "./execute/runner-lock.ts";
import type { Agent } from "./model/agent.ts";
import { RequestError } from "./model/errors.ts";
import { createIds } from "./model/ids.ts";
import type { StartCommand } from "./model/process.ts";
import type { RunnerPort } from "./model/runner-port.ts";
import { sweepCgroups } from "./process/cgroup.ts";
import { killOrphans } from "./process/orphans.ts";
import { start } from "./process/start.ts";
import { currentOwner, ownerIsAlive } from "./record/audit/owner.ts";
import { createRedactor } from "./redact/redactor.ts";
import { executorFor } from "./runner-executors.ts";

export { builtInExecutors } from "./runner-executors.ts";

/** A runner: one registration for each profile, over whatever port it is given. */
export interface RunnerOptions {
  port: RunnerPort;
  profiles: readonly RunnerProfile[];
  stateDirectory: string;
  /** Where runs work that name no project_dir. */
  projectDir: string;
  /** Tells runners of one host and directory apart. */
  name?: string;
  /** In place of each profile's own number. */
  slots?: number;
  env: Readonly<Record<string, string | undefined>>;
  maxOutputKb: number;
  defaultTimeoutSeconds?: number;
  times?: Partial<Times>;
  start?: StartCommand;
  /** Whatever an operator should see. `cause` may hold a stack. */
  onNotice: (message: string, cause?: unknown) => void;
}

export interface RunnerProfile {
  loaded: LoadedProfile;
  agents: Agent[];
}

export interface Runner {
  readonly registrations: readonly RunningRegistration[];
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
  goodbyeMs: 900,
  sweepMs: 60_000,
};

export async function startRunner(options: RunnerOptions): Promise<Runner> {
  const giveUp = new AbortController();
  const schemas = lazySchemas();
  sweepCgroups();
  const opened: { profile: string; registration: RunningRegistration; release: () => void }[] = [];
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
  const done = Promise.all(opened.map(({ registration }) => registration.done)).then(async () => {
    for (const { release } of opened) release();
    await schemas.stop();
  });
  return {
    registrations: opened.map(({ registration }) => registration),
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
  options: RunnerOptions,
  schemas: LazySchemas,
  signal: AbortSignal,
) {
  const { profile, name: executor_profile } = loaded;
  const runner = identityOf(executor_profile, options);
  const directory = join(options.stateDirectory, "runners", runner);
  const owner = currentOwner();
  const lock = lockRunner(directory, owner, ownerIsAlive);
  try {
    const redactor = createRedactor({ variables: options.env });
    const executor = await executorFor(loaded, options, redactor, schemas);
    const registrationOptions: RegistrationOptions = {
      port: options.port,
      registration: {
        protocol: 1,
        runner_key: runnerKey(directory),
        ...(options.name === undefined ? {} : { name: options.name }),
        hostname: hostname(),
        project_dir: options.projectDir,
        executor_profile,
        executor: toRegistrationExecutor(profile),
        tags: profile.tags,
        require_matching_tags: profile.require_matching_tags,
        agents,
        slots: options.slots ?? profile.slots,
        ...(options.env["DROVER_AGENT"] ? { only_agent: options.env["DROVER_AGENT"] } : {}),
      },
      logs: {
        directory: join(options.stateDirectory, "logs"),
        runner,
        now,
        memoryBytes: 1024 * 1024,
        maxBytes: 256 * 1024 * 1024,
      },
      supervise: {
        executor,
        runnerDirectory: loaded.directory,
        places: {
          projectDir: options.projectDir,
          roots: profile.project_roots,
          home: options.env["HOME"] ?? homedir(),
          sessionHomes: profile.home === "session" ? join(options.stateDirectory, "homes") : null,
          scratch: join(options.stateDirectory, "work"),
          // short: a socket in there has a path of 107 characters at most
          tmpRoot: join(options.stateDirectory, "tmp", runner.slice(-12)),
          stateDirectory: options.stateDirectory,
        },
        limits: {
          timeout_seconds: profile.timeout_seconds,
          idle_timeout_seconds: profile.idle_timeout_seconds,
          jobTimeoutSeconds: secondsIn(options.env, "JOB_TIMEOUT_SECONDS"),
          defaultTimeoutSeconds: options.defaultTimeoutSeconds,
        },
        variables: { allowed: profile.allow_env, env: options.env },
        start: options.start ?? start,
        startOptions: {
          isolation: profile.isolation ?? "auto",
          environment: { mode: "merge", allow: [...profile.env_from, ...(executor.variables ?? [])] },
          parentEnvironment: options.env,
          uncounted: { folders: [options.stateDirectory] },
          ...(profile.leftovers === undefined ? {} : { leftovers: profile.leftovers }),
        },
        owner,
        isAlive: ownerIsAlive,
        locks: join(options.stateDirectory, "locks"),
        uploads: uploadTimes,
        random: Math.random,
        redactor,
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
    return {
      profile: executor_profile,
      registration: await startRegistration(registrationOptions, signal),
      release: () => lock.release(),
    };
  } catch (error) {
    lock.release();
    throw error;
  }
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
