import { hostname } from "node:os";
import { createAgentGate } from "./define/agent-gate.ts";
import { findPackageDirectory } from "./define/package-directory.ts";
import { isUnchangedSince, isTrustUnchangedSince } from "./define/unchanged-since.ts";
import { placeId } from "./execute/claim/runner-lock.ts";
import { newShortLivedName, type NestedRuns, openNestedRuns } from "./compose/open-nested-runs.ts";
import type { Local } from "./local.ts";
import type { DefinitionFault } from "./model/definition-fault.ts";
import { HostError, RequestError } from "./model/errors.ts";
import type { InProcessOptions } from "./model/in-process-options.ts";
import type { Demands } from "./model/run.ts";
import type { RunnerPort } from "./model/runner-port.ts";
import type { Session } from "./model/session.ts";
import { recordDirectory } from "./model/state-layout.ts";
import type { CreateRun, Op } from "./model/store.ts";
import type { Environment } from "./model/environment.ts";
import { localClient, type OpenCoordinator, openCoordinator } from "./compose/open-coordinator.ts";
import { unmetDemands } from "./record/matching.ts";
import type { RecordStore } from "./record/record-store.ts";
import { absentNames, openProfiles, profileFolders } from "./compose/open-profiles.ts";
import { type Runner, type RunnerProfile, startRunner } from "./runner.ts";
import { checkSubmit } from "./serve/check-submit.ts";
import { deadShortLived } from "./compose/short-lived-runners.ts";
import { sweepShortLived } from "./compose/sweep-short-lived.ts";
import type { ApiClient } from "./wire/client.ts";
import { findSession } from "./cli/find-id.ts";
import { describeUntrusted, findUntrusted } from "./cli/resolve-trust.ts";

/** What the process is about: an agent, a session, or an agent that no profile brings, with the folder it works in. */
export interface Wanted {
  agent?: string;
  session?: string;
  /** The name of such a runner that is gone: ours takes it, and with it the runs that demand that one. */
  runner?: string;
  spec?: { profile: RunnerProfile; workspace: string };
}

export interface EmbeddedOptions {
  local: Local;
  env: Environment;
  cwd: string;
  /** A folder of agent files, or a fleet file; null: none. */
  agentsDirectory: string | null;
  wanted: Wanted;
  /** Who stops its runs where it fails, as the record says it. */
  name: string;
  /** Commands run since then: definitions that came or changed after it may be theirs, and are left out. */
  since?: number;
  /** Leaves its runs to a later `drover up`: there is no runner here. */
  detach?: boolean;
  inProcess?: InProcessOptions;
  onNotice: (message: string) => void;
  onDefect: (error: unknown, where: string) => void;
  onAgentFaults: (faults: readonly DefinitionFault[]) => void;
}

/** The kernel dates files by a clock that moves in steps. */
const clockStepMs = 20;

function isPackaged(folder: string): boolean {
  return ["bundled" as const, "examples" as const].some((name) => folder.startsWith(`${findPackageDirectory(name)}/`));
}

type EmbeddedWork<T> = (client: ApiClient, coordinator: OpenCoordinator) => Promise<T>;

/** The process is known to be dead at once by those who share the state directory, so a lease need not tell it. */
const leaseMs = 30_000;

/**
 * Works with the record opened in this process, and a runner that lives as long as the work and takes its runs alone.
 * Any number of them may do so in one state directory at once. Nothing listens on a port; commands inside its runs reach
 * it by a socket, and their runs get a runner of their own, so that no run waits for a slot that its parent has.
 */
export async function withEmbedded<T>(options: EmbeddedOptions, work: EmbeddedWork<T>): Promise<T> {
  const { local, wanted, onNotice, onDefect } = options;
  const { stateDirectory } = local.places;
  const { execution, provider } = local.config;
  const began = Date.now() - clockStepMs;
  const settledSince = (since: number | undefined) => (folder: string) => {
    const is =
      since === undefined ||
      isPackaged(folder) ||
      (isTrustUnchangedSince(options.env, since) && isUnchangedSince(folder, since));
    if (!is) onNotice(`${folder} is left out: it, or whom you trust, changed while this command ran`);
    return is;
  };
  const agentsDirectory = [options.agentsDirectory ?? []].flat().find(settledSince(options.since)) ?? null;
  let pin: (run: CreateRun) => Demands = () => ({});
  const made: string[] = [];
  const coordinator = await openCoordinator({
    stateDirectory,
    headCopy: local.places.headCopy,
    agentsDirectory,
    // definitions that appear while this command runs are for the next one
    agentGate: agentsDirectory === null ? null : createAgentGate(agentsDirectory, null),
    leaseMs,
    maxFileBytes: local.config.files.max_file_mb * 1024 * 1024,
    variables: options.env,
    onDefect: options.onDefect,
    onAgentFaults: options.onAgentFaults,
    instrument: (store) =>
      withPins(store, (op) => {
        made.push(op.run.run_id);
        return pin(op);
      }),
  });
  const own = { stateDirectory, env: anyAgent(options.env), maxOutputKb: execution.max_output_kb, provider, onNotice };
  const watched = watchRecord(coordinator.port);
  let runner: Runner | null = null;
  let nested: NestedRuns | null = null;
  let profiles: Awaited<ReturnType<typeof openProfiles>> | null = null;
  try {
    const client = localClient(coordinator, checkSubmit);
    await sweepShortLived(deadShortLived(stateDirectory), { ...own, port: coordinator.port });
    const session = wanted.session === undefined ? null : await findSession(client, wanted.session);
    const cwd = wanted.spec?.workspace ?? session?.runner_dir ?? options.cwd;
    const place = { cwd, env: options.env, options: {} };
    if (cwd !== options.cwd && !wanted.spec)
      describeUntrusted(findUntrusted(place, { ...local, leftOut: [] }, { profiles: true }), options.env).forEach(
        onNotice,
      );
    const open = (since: number | undefined) =>
      openProfiles({
        wanted: null,
        folders: profileFolders(cwd, local.config, true, options.env).filter(settledSince(since)),
        agentsSettled: settledSince(since),
        isolation: local.config.isolation,
        env: options.env,
        onNotice,
        uncheckedSchemas: true,
      });
    if (!wanted.spec) profiles = await open(options.since);
    const offered = profiles?.profiles ?? [wanted.spec!.profile];
    const agents = offered.flatMap((profile) => profile.agents);
    // one that was named by its file is meant, whatever else has its name
    if (wanted.spec) coordinator.agents.setFiles(agents);
    else coordinator.agents.setOwn(agents);
    if (options.detach) {
      pin = (op) => placeOf(op, offered, stateDirectory);
    } else {
      const base = {
        ...own,
        port: watched.port,
        projectDir: cwd,
        shortLived: true,
        defaultTimeoutSeconds: execution.default_timeout_seconds,
        keepLogsDays: Math.min(local.config.retention.runs_days, local.config.retention.events_days),
      };
      const pinOwn = (op: CreateRun): Demands => (runner ? pinTo(runner, offered)(op) : {});
      nested = openNestedRuns({
        coordinator,
        runner: base,
        offered,
        openProfiles: async () => (profiles ??= await open(began)).profiles,
        onRunner(started, all) {
          const pinNested = pinTo(started, all);
          pin = (op) => (op.run.parent_run_id === null ? pinOwn : pinNested)(op);
        },
        onFault: (error) => onDefect(error, "commands inside runs"),
      });
      pin = pinOwn;
      runner = await startRunner({
        ...base,
        apiUrl: nested.url,
        profiles: needed(offered, wanted, session),
        name: wanted.runner ?? newShortLivedName(),
        ...(options.inProcess ? { inProcess: options.inProcess } : {}),
      });
    }
    return await Promise.race([work(client, coordinator), watched.damaged]);
  } catch (error) {
    // nobody watches them any more
    if (made.length > 0 && !isDamaged(error)) await coordinator.dispatcher.stopRuns(made, options.name);
    // it may be an agent of a profile that would be offered if its program were here
    if (error instanceof RequestError && error.code === "DROVER-SUB-001" && profiles && profiles.absent.length > 0)
      onNotice(`not offered here, as a program is missing (drover doctor says which): ${absentNames(profiles)}`);
    throw error;
  } finally {
    await nested?.close();
    await runner?.stop();
    await profiles?.stop();
    await coordinator.stop();
  }
}

/** A runner tries again whatever fails; on a damaged record it would do so for ever, and the run never end. */
function watchRecord(port: RunnerPort): { port: RunnerPort; damaged: Promise<never> } {
  let fail!: (error: unknown) => void;
  const damaged = new Promise<never>((_, reject) => (fail = reject));
  // where the command has ended before, nobody waits for it
  damaged.catch(() => undefined);
  const note = (error: unknown): never => {
    if (isDamaged(error)) fail(error);
    throw error;
  };
  return {
    damaged,
    port: {
      ...port,
      poll: (request, signal) => port.poll(request, signal).catch(note),
      report: (request) => port.report(request).catch(note),
    },
  };
}

function isDamaged(error: unknown): boolean {
  return error instanceof HostError && error.code === "DROVER-STA-004";
}

/** Every run that this process makes is pinned, and has one attempt: the runner it is pinned to has one life. */
function withPins(store: RecordStore, pin: (op: CreateRun) => Demands): RecordStore {
  const pinned = (op: Op): Op => {
    if (op.op !== "create_run" || op.agent === undefined) return op;
    const run = { ...op.run, demands: { ...op.run.demands, ...pin(op) } };
    return { ...op, run, agent: { ...op.agent, max_attempts: 1 } };
  };
  // each operation stays one of its own kind
  const apply = ((ops: readonly Op[]) => store.apply(ops.map(pinned) as never)) as RecordStore["apply"];
  return { ...store, apply };
}

/** To the registration whose profile brings the agent, or the first that may take the run. */
function pinTo(runner: Runner, offered: readonly RunnerProfile[]): (op: CreateRun) => Demands {
  return ({ run }) => {
    const able = runner.facts.filter((facts) => {
      const pinned = { ...run.demands, runner_id: facts.runner_id };
      return unmetDemands(pinned, facts).length === 0;
    });
    const bringing = able.find(({ executor_profile }) => brings(offered, executor_profile, run.agent_name));
    const { runner_id } = bringing ?? able[0] ?? {};
    return runner_id === undefined ? {} : { runner_id };
  };
}

/** For a run that is left to a later `drover up`: any runner of this place with the profile that brings the agent. */
function placeOf({ run }: CreateRun, offered: readonly RunnerProfile[], stateDirectory: string): Demands {
  const profile = offered.find(({ loaded }) => brings(offered, loaded.name, run.agent_name));
  if (profile === undefined) return {};
  return {
    hostname: hostname(),
    place_id: placeId(recordDirectory(stateDirectory)),
    executor_profile: profile.loaded.name,
  };
}

function brings(offered: readonly RunnerProfile[], profile: string, agent: string): boolean {
  return offered.some(({ loaded, agents }) => loaded.name === profile && agents.some(({ name }) => name === agent));
}

/** Each profile is a registration: only those that may carry this out. */
function needed(
  offered: readonly RunnerProfile[],
  { agent }: Wanted,
  session: Session | null,
): readonly RunnerProfile[] {
  const those = offered.filter(({ loaded }) =>
    session ? loaded.name === session.executor_profile : agent !== undefined && brings(offered, loaded.name, agent),
  );
  return those.length > 0 ? those : offered;
}

/** DROVER_AGENT is for runners that serve others: this one is there for what was asked for. */
function anyAgent({ DROVER_AGENT: _agent, ...env }: EmbeddedOptions["env"]): EmbeddedOptions["env"] {
  return env;
}
