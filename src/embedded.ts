import { hostname } from "node:os";
import { createAgentGate } from "./define/agent-gate.ts";
import { findPackageDirectory } from "./define/package-directory.ts";
import { isUnchangedSince, isTrustUnchangedSince } from "./define/unchanged-since.ts";
import { readPlaceId } from "./execute/claim/runner-lock.ts";
import { createRunnerName, type NestedRuns, openNestedRuns } from "./compose/open-nested-runs.ts";
import type { Project } from "./local.ts";
import type { DefinitionFault } from "./model/definition-fault.ts";
import { HostError, RequestError } from "./model/errors.ts";
import type { InProcessOptions } from "./model/in-process-options.ts";
import type { Demands } from "./model/run.ts";
import type { RunnerPort } from "./model/runner-port.ts";
import type { Session } from "./model/session.ts";
import { recordDirectory } from "./model/state-layout.ts";
import type { CreateRun, Op } from "./model/store.ts";
import type { Environment } from "./model/environment.ts";
import { createLocalClient, type OpenCoordinator, openCoordinator } from "./compose/open-coordinator.ts";
import { findUnmetDemands } from "./record/matching.ts";
import type { RecordStore } from "./record/record-store.ts";
import { listAbsent, openProfiles, findProfileDirectories } from "./compose/open-profiles.ts";
import { type Runner, type RunnerProfile, startRunner } from "./runner.ts";
import { checkSubmit } from "./serve/check-submit.ts";
import { findDeadRunners } from "./compose/short-lived-runners.ts";
import { sweepShortLived } from "./compose/sweep-short-lived.ts";
import type { ApiClient } from "./wire/client.ts";
import { findSession } from "./cli/find-id.ts";
import { describeUntrusted, findUntrusted } from "./cli/resolve-trust.ts";

/** What the process runs: an agent, a session, or an agent that was read from a file. */
export interface EmbeddedTarget {
  agent?: string;
  session?: string;
  /** The name of an earlier embedded runner. The new one takes the name, and with it the runs pinned to the old one. */
  runner?: string;
  /** An agent that was read from a file, in a profile of its own, and the run's working directory. */
  preparedAgent?: { profile: RunnerProfile; workspace: string };
}

export interface EmbeddedOptions {
  project: Project;
  env: Environment;
  cwd: string;
  /** A directory of agent files, or a fleet file. */
  agentsDirectory: string | null;
  target: EmbeddedTarget;
  /** Who is recorded as stopping the runs if this process stops them after a failure. */
  requester: string;
  /** When a command started. Definitions that are newer are ignored, because the command may have written them. */
  commandStartedAt?: number;
  /** Starts no runner and leaves the runs to a later `drover up`. */
  detach?: boolean;
  inProcess?: InProcessOptions;
  /** Called with the id of each run that this process creates, before the run is stored. */
  onRunCreated?: (run_id: string) => void;
  onNotice: (message: string) => void;
  onDefect: (error: unknown, where: string) => void;
  onAgentFaults: (faults: readonly DefinitionFault[]) => void;
}

/** File timestamps come from a coarse kernel clock that advances in steps of this size at most. */
const clockStepMs = 20;

/** Whether the directory is part of Drover's package. */
function isPackaged(directory: string): boolean {
  return ["bundled" as const, "examples" as const].some((name) =>
    directory.startsWith(`${findPackageDirectory(name)}/`),
  );
}

type EmbeddedWork<T> = (client: ApiClient, coordinator: OpenCoordinator) => Promise<T>;

/** The lease is long, because processes that share the state directory detect the death of this one without waiting for it. */
const leaseMs = 30_000;

/**
 * Opens the record in this process, starts a runner that takes only the runs of this process, and calls `work`. Several
 * processes can do this in one state directory at once. Nothing listens on a port. Commands inside the runs connect to a
 * socket, and a second runner executes their runs, so that no run waits for a slot that its parent run occupies.
 */
export async function withEmbedded<T>(options: EmbeddedOptions, work: EmbeddedWork<T>): Promise<T> {
  const { project, target, onNotice, onDefect } = options;
  const { stateDirectory } = project.locations;
  const { execution, provider } = project.config;
  const startedAt = Date.now() - clockStepMs;
  const createUnchangedCheck = (since: number | undefined) => (directory: string) => {
    const isUnchanged =
      since === undefined ||
      isPackaged(directory) ||
      (isTrustUnchangedSince(options.env, since) && isUnchangedSince(directory, since));
    if (!isUnchanged)
      onNotice(`${directory} is ignored, because it or the list of trusted directories changed while this command ran`);
    return isUnchanged;
  };
  const agentsDirectory =
    [options.agentsDirectory ?? []].flat().find(createUnchangedCheck(options.commandStartedAt)) ?? null;
  let pin: (run: CreateRun) => Demands = () => ({});
  const createdRunIds: string[] = [];
  const coordinator = await openCoordinator({
    stateDirectory,
    headCopy: project.locations.headCopy,
    agentsDirectory,
    // Definitions that appear while this command runs apply to the next one.
    agentGate: agentsDirectory === null ? null : createAgentGate(agentsDirectory, null),
    leaseMs,
    maxFileBytes: project.config.files.max_file_mb * 1024 * 1024,
    variables: options.env,
    onDefect: options.onDefect,
    onAgentFaults: options.onAgentFaults,
    instrument: (store) =>
      withPins(store, (op) => {
        createdRunIds.push(op.run.run_id);
        options.onRunCreated?.(op.run.run_id);
        return pin(op);
      }),
  });
  const commonRunnerOptions = {
    stateDirectory,
    env: withoutAgentFilter(options.env),
    maxOutputKb: execution.max_output_kb,
    provider,
    onNotice,
  };
  const damageDetector = detectDamage(coordinator.port);
  let runner: Runner | null = null;
  let nested: NestedRuns | null = null;
  let profiles: Awaited<ReturnType<typeof openProfiles>> | null = null;
  try {
    const client = createLocalClient(coordinator, checkSubmit);
    await sweepShortLived(findDeadRunners(stateDirectory), { ...commonRunnerOptions, port: coordinator.port });
    const session = target.session === undefined ? null : await findSession(client, target.session);
    const cwd = target.preparedAgent?.workspace ?? session?.runner_dir ?? options.cwd;
    const context = { cwd, env: options.env, options: {} };
    if (cwd !== options.cwd && !target.preparedAgent)
      describeUntrusted(
        findUntrusted(context, { ...project, ignoredKeys: [] }, { profiles: true }),
        options.env,
      ).forEach(onNotice);
    const openAllProfiles = (since: number | undefined) =>
      openProfiles({
        names: null,
        directories: findProfileDirectories(cwd, project.config, true, options.env).filter(createUnchangedCheck(since)),
        acceptsAgents: createUnchangedCheck(since),
        isolation: project.config.isolation,
        env: options.env,
        onNotice,
        skipSchemaChecks: true,
      });
    if (!target.preparedAgent) profiles = await openAllProfiles(options.commandStartedAt);
    const offeredProfiles = profiles?.profiles ?? [target.preparedAgent!.profile];
    const agents = offeredProfiles.flatMap((profile) => profile.agents);
    // An agent given by its file takes precedence over other agents of the same name.
    if (target.preparedAgent) coordinator.agents.setFileAgents(agents);
    else coordinator.agents.setLocal(agents);
    if (options.detach) {
      pin = (op) => pinToHost(op, offeredProfiles, stateDirectory);
    } else {
      const commonOptions = {
        ...commonRunnerOptions,
        port: damageDetector.port,
        projectDir: cwd,
        shortLived: true,
        defaultTimeoutSeconds: execution.default_timeout_seconds,
        keepLogsDays: Math.min(project.config.retention.runs_days, project.config.retention.events_days),
      };
      const pinDirectRun = (op: CreateRun): Demands => (runner ? pinTo(runner, offeredProfiles)(op) : {});
      nested = openNestedRuns({
        coordinator,
        runner: commonOptions,
        offered: offeredProfiles,
        openProfiles: async () => (profiles ??= await openAllProfiles(startedAt)).profiles,
        onRunner(started, all) {
          const pinNestedRun = pinTo(started, all);
          pin = (op) => (op.run.parent_run_id === null ? pinDirectRun : pinNestedRun)(op);
        },
        onFault: (error) => onDefect(error, "commands inside runs"),
      });
      pin = pinDirectRun;
      runner = await startRunner({
        ...commonOptions,
        apiUrl: nested.url,
        profiles: selectProfiles(offeredProfiles, target, session),
        name: target.runner ?? createRunnerName(),
        ...(options.inProcess ? { inProcess: options.inProcess } : {}),
      });
    }
    return await Promise.race([work(client, coordinator), damageDetector.damaged]);
  } catch (error) {
    // Stop the runs, because no process waits for them any longer.
    if (createdRunIds.length > 0 && !isDamaged(error))
      await coordinator.dispatcher.stopRuns(createdRunIds, options.requester);
    // An unknown agent without a similar name may belong to a profile whose program is not installed.
    const isUnknownAgent = error instanceof RequestError && error.code === "DROVER-SUB-001";
    if (isUnknownAgent && !error.message.includes("Did you mean") && profiles && profiles.absent.length > 0)
      onNotice(`not available, because a program is missing (run drover doctor for details): ${listAbsent(profiles)}`);
    throw error;
  } finally {
    await nested?.close();
    await runner?.stop();
    await profiles?.stop();
    await coordinator.stop();
  }
}

/** Detects a damaged record. A runner retries all errors, so the run would never end. */
function detectDamage(port: RunnerPort): { port: RunnerPort; damaged: Promise<never> } {
  let fail!: (error: unknown) => void;
  const damage = new Promise<never>((_, reject) => (fail = reject));
  // Avoid an unhandled rejection if the work has already ended.
  damage.catch(() => undefined);
  const rethrow = (error: unknown): never => {
    if (isDamaged(error)) fail(error);
    throw error;
  };
  return {
    damaged: damage,
    port: {
      ...port,
      poll: (request, signal) => port.poll(request, signal).catch(rethrow),
      report: (request) => port.report(request).catch(rethrow),
    },
  };
}

function isDamaged(error: unknown): boolean {
  return error instanceof HostError && error.code === "DROVER-STA-004";
}

/** Pins every run that this process creates to its runner, with a single attempt, because that runner never restarts. */
function withPins(store: RecordStore, pin: (op: CreateRun) => Demands): RecordStore {
  const addPin = (op: Op): Op => {
    if (op.op !== "create_run" || op.agent === undefined) return op;
    const run = { ...op.run, demands: { ...op.run.demands, ...pin(op) } };
    return { ...op, run, agent: { ...op.agent, max_attempts: 1 } };
  };
  // `addPin` does not change the kind of an operation.
  const apply = ((ops: readonly Op[]) => store.apply(ops.map(addPin) as never)) as RecordStore["apply"];
  return { ...store, apply };
}

/** Pins a run to the registration whose profile contains the agent, or else to the first that can take the run. */
function pinTo(runner: Runner, offeredProfiles: readonly RunnerProfile[]): (op: CreateRun) => Demands {
  return ({ run }) => {
    const matchingFacts = runner.facts.filter((facts) => {
      const demands = { ...run.demands, runner_id: facts.runner_id };
      return findUnmetDemands(demands, facts).length === 0;
    });
    const preferred = matchingFacts.find(({ executor_profile }) =>
      containsAgent(offeredProfiles, executor_profile, run.agent_name),
    );
    const { runner_id } = preferred ?? matchingFacts[0] ?? {};
    return runner_id === undefined ? {} : { runner_id };
  };
}

/** Lets a later `drover up` take the run: any runner of this state directory with the profile that contains the agent. */
function pinToHost({ run }: CreateRun, offeredProfiles: readonly RunnerProfile[], stateDirectory: string): Demands {
  const profile = offeredProfiles.find(({ loaded }) => containsAgent(offeredProfiles, loaded.name, run.agent_name));
  if (profile === undefined) return {};
  return {
    hostname: hostname(),
    place_id: readPlaceId(recordDirectory(stateDirectory)),
    executor_profile: profile.loaded.name,
  };
}

function containsAgent(offeredProfiles: readonly RunnerProfile[], profile: string, agent: string): boolean {
  return offeredProfiles.some(
    ({ loaded, agents }) => loaded.name === profile && agents.some(({ name }) => name === agent),
  );
}

/** Selects the profiles that can run the target. Each profile costs a registration. */
function selectProfiles(
  offeredProfiles: readonly RunnerProfile[],
  { agent }: EmbeddedTarget,
  session: Session | null,
): readonly RunnerProfile[] {
  const suitableProfiles = offeredProfiles.filter(({ loaded }) =>
    session
      ? loaded.name === session.executor_profile
      : agent !== undefined && containsAgent(offeredProfiles, loaded.name, agent),
  );
  return suitableProfiles.length > 0 ? suitableProfiles : offeredProfiles;
}

/** Removes DROVER_AGENT, which restricts long-lived runners and must not restrict this one. */
function withoutAgentFilter({ DROVER_AGENT: _agent, ...env }: EmbeddedOptions["env"]): EmbeddedOptions["env"] {
  return env;
}
