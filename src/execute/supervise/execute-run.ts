import type { Correlation } from "../../model/execution.ts";
import type { Invocation, Outcome, ParkedOutcome } from "../../model/executor.ts";
import { describeVariableFault, expandAgent } from "../../model/expand-agent.ts";
import { createFailedOutcome, toFailedOutcome } from "../../model/outcome.ts";
import type { Claim } from "../../model/runner-port.ts";
import type { SessionState } from "../../model/session-state.ts";
import type { Questions } from "./questions.ts";
import type { ErrorOutcomes } from "./error-outcome.ts";
import { openDirectories } from "../workspace/open-directories.ts";
import { buildEnvironmentEvent } from "../executions/environment-event.ts";
import { buildDroverVariables } from "../executions/execution-record.ts";
import { createExecutions, type Executions } from "../executions/executions.ts";
import type { PartialText } from "../journal/partial-text.ts";
import { openNestedLog } from "../nested/nested-log.ts";
import { runOnFinish } from "../executions/on-finish.ts";
import type { Recorder } from "../journal/recorder.ts";
import { createRunContext } from "./run-context.ts";
import { chooseIdleMs, splitLimits, chooseTimeoutMs } from "./run-limits.ts";
import type { RunStop } from "./run-stop.ts";
import { type DiskWatch, watchDisk } from "./disk-watch.ts";
import type { SessionKeeper } from "../sessions/session-keeper.ts";
import { toStopOutcome, getStopReason } from "./stop-outcome.ts";
import type { RunLinks, SuperviseOptions } from "./supervise-options.ts";
import type { InputQueue } from "./input-queue.ts";
import { getWorkspaceKind } from "../workspace/workspace-kind.ts";
import { trackFiles } from "../workspace/session-files.ts";

/** The parts that a run is assembled from, besides its claim. */
export interface RunParts {
  /** `RUN.ATTEMPT`, used in file names and notices. */
  name: string;
  options: SuperviseOptions;
  links: RunLinks;
  stop: RunStop;
  overBudget: AbortSignal;
  input: InputQueue;
  log: Recorder;
  partialText: PartialText;
  questions: Questions;
  keeper: SessionKeeper;
  errors: ErrorOutcomes;
  /** Registers a cleanup that runs once the outcome is in the journal. The cleanup must not reject. */
  afterOutcome(clean: () => Promise<void>): void;
}

/** Opens the run's directories, calls its executor, and then closes everything except the temporary directory. */
export async function executeRun(claim: Claim, parts: RunParts): Promise<Outcome> {
  const { options, stop, log, keeper, name } = parts;
  const { record } = log;
  const { can } = options.executor;
  const { signal } = stop;
  const expansion = expandAgent(claim.invocation.agent, options.variables);
  if (expansion.faults.length > 0)
    return createFailedOutcome("refused", `${expansion.faults.map(describeVariableFault).join("; ")}.`);
  const invocation = { ...claim.invocation, agent: expansion.agent };
  if (invocation.fork_at_turn !== null && !can.fork_at_turn)
    return createFailedOutcome(
      "refused",
      `The executor ${options.executor.name} cannot fork a session at an earlier turn. Omit fork_at_turn.`,
    );
  const hasState = can.state === true && (invocation.mode !== "start" || invocation.continues);
  const state = hasState ? await keeper.load() : null;
  if (state !== null && !state.here && !state.portable)
    return createFailedOutcome("session_not_found", notPortable(invocation));
  const opened = await openDirectories(invocation, {
    ...(state === null ? {} : { saved: { ...state, loadFiles: keeper.loadFiles } }),
    tmpName: name,
    directories: options.directories,
    lockOptions: {
      locksDirectory: options.lockDirectory,
      owner: options.owner,
      isAlive: options.isAlive,
      newId: options.newId,
    },
    signal,
    onWaiting: (holder) => record({ type: "system", subtype: "waiting_for_directory", data: holder }),
  });
  if (!opened.ok)
    return opened.reason === null
      ? toStopOutcome(getStopReason(signal))
      : createFailedOutcome(opened.reason, opened.message);
  const onNotRemoved = (error: unknown): void =>
    options.onNotice(`the directories of run ${name} could not be released`, error);
  parts.afterOutcome(() => opened.removeTmp().catch(onNotRemoved));
  if (invocation.agent.type === "autonomous") record(buildEnvironmentEvent(options.startOptions));
  if (can.state && getWorkspaceKind(invocation) === "scratch") keeper.track(trackFiles(opened.dirs.work));
  let removeSession = !can.resume && !can.fork;
  try {
    return await executeInDirectories(opened, { ...claim, invocation }, { ...parts, state }, (finalOutcome) => {
      // If the first run of a session is refused, the session never existed.
      removeSession ||=
        invocation.mode === "start" && finalOutcome.status === "failed" && finalOutcome.reason === "refused";
      removeSession &&= finalOutcome.status !== "parked";
    });
  } finally {
    await opened.close(removeSession).catch(onNotRemoved);
  }
}

type OpenedDirectories = Extract<Awaited<ReturnType<typeof openDirectories>>, { ok: true }>;
type StatefulParts = RunParts & { state: SessionState | null };

async function executeInDirectories(
  opened: OpenedDirectories,
  claim: Claim,
  parts: StatefulParts,
  onReturned: (finalOutcome: Outcome) => void,
): Promise<Outcome> {
  const { options, links, stop, log } = parts;
  const { signal, lostSignal, clocks } = stop;
  const { invocation } = claim;
  const limits = splitLimits(invocation.agent);
  const timeoutMs = chooseTimeoutMs(invocation.agent, options.limits);
  const { correlation, repoRoot } = findRunCheckout(claim, opened.dirs.work, options);
  const { run_id, attempt } = claim;
  const nested = openNestedLog({
    ...options,
    runsDirectory: options.directories.runsDirectory,
    run_id,
    attempt,
    record: log.record,
  });
  const executions = createExecutions({
    ...options,
    writable: [nested.path],
    droverVariables: {
      ...buildDroverVariables(run_id, correlation, repoRoot),
      DROVER_ATTEMPT: String(attempt),
      DROVER_NESTED_LOG: nested.path,
      ...(options.apiUrl === null ? {} : { DROVER_API_URL: options.apiUrl, DROVER_API_KEY: claim.attempt_token }),
    },
    dirs: opened.dirs,
    timeoutMs,
    commandLimits: limits.perCommand,
    runLimits: limits.perRun,
    correlation,
    recorder: log,
    sync: links.journal.sync,
  });
  let watch: DiskWatch | null = null;
  try {
    const watchResult = await watchDisk({
      limits: limits.perRun,
      writtenDirectories: opened.writtenDirectories,
      excluded: [options.directories.stateDirectory],
      signal,
      onExceeded: () => stop.abort("disk_limit"),
    });
    if (!watchResult.ok) return createFailedOutcome("dependency_missing", watchResult.fault.message);
    watch = watchResult.watch;
    clocks.start({ timeoutMs, idleMs: chooseIdleMs(invocation.agent, options.limits) });
    const context = createRunContext({
      ...parts,
      claim,
      dirs: opened.dirs,
      signal,
      lostSignal,
      killSignal: stop.killSignal,
      hasEnded: () => !stop.isOpen,
      clocks,
      executions,
      onFenced: () => stop.abort("lease_lost"),
    });
    const running = options.executor.run(invocation, context).catch(parts.errors.fromExecutor);
    const rawOutcome = await Promise.race([running, stop.givenUp]);
    const finalOutcome = rawOutcome.status === "parked" ? toParkedOutcome(rawOutcome, claim, parts) : rawOutcome;
    onReturned(finalOutcome);
    stop.close();
    await endExecutions(executions, parts);
    if (finalOutcome.status === "parked") return finalOutcome;
    const outcome = await watch.applyLimit(finalOutcome);
    await runOnFinish(invocation.agent.on_finish, outcome, {
      ...options,
      executions,
      emit: log.record,
      signal,
      lostSignal,
    });
    await executions.end();
    return outcome;
  } finally {
    watch?.stop();
    await nested.close();
  }
}

/** Ignores a repository around a scratch directory, because it belongs to Drover's state directory and not to the run. */
function findRunCheckout(
  { invocation, correlation }: Claim,
  directory: string,
  { findCheckout }: SuperviseOptions,
): { correlation: Correlation; repoRoot?: string } {
  if (getWorkspaceKind(invocation) === "scratch") return { correlation };
  const { repo_sha, repo_root } = findCheckout(directory, correlation.repo_sha);
  return { correlation: { ...correlation, repo_sha }, repoRoot: repo_root };
}

/** A parked run keeps no process, so it needs a saved state to continue from. A run that is being stopped cannot park. */
function toParkedOutcome(
  parked: ParkedOutcome,
  { invocation }: Claim,
  { options, stop, keeper, state }: StatefulParts,
): Outcome {
  const { signal } = stop;
  if (signal.aborted && signal.reason !== "shutdown") return toStopOutcome(getStopReason(signal));
  const hasState = keeper.hasSaved || (invocation.continues && state !== null);
  return options.executor.can.park && hasState ? parked : toFailedOutcome(parked);
}

async function endExecutions(executions: Executions, { options, stop, log }: RunParts): Promise<void> {
  const remaining = await executions.end();
  if (remaining === 0 || stop.signal.aborted) return;
  const programs = remaining === 1 ? "a program it had started was" : `${remaining} programs it had started were`;
  const message = `The executor ${options.executor.name} returned while ${programs} still running; Drover stopped ${remaining === 1 ? "it" : "them"}.`;
  log.record({ type: "error", code: "left_running", message });
}

function notPortable({ session_id }: Invocation): string {
  return `Session ${session_id} needs files that were not saved: they are in a project directory on its last runner, or they are too large or too many. Continue it on that runner, or start a new session.`;
}
