import type { Correlation } from "../../model/execution.ts";
import type { Invocation, Outcome, Parked } from "../../model/executor.ts";
import { describeVariableFault, expandAgent } from "../../model/expand-agent.ts";
import { failed, failedInsteadOfParked } from "../../model/outcome.ts";
import type { Claim } from "../../model/runner-port.ts";
import type { SessionState } from "../../model/session-state.ts";
import type { Questions } from "./questions.ts";
import type { ErrorOutcomes } from "./error-outcome.ts";
import { openDirectories } from "../workspace/open-directories.ts";
import { environmentEvent } from "../executions/environment-event.ts";
import { inheritedIds } from "../executions/execution-record.ts";
import { createExecutions, type Executions } from "../executions/executions.ts";
import type { PartialText } from "../journal/partial-text.ts";
import { openNestedLog } from "../nested/nested-log.ts";
import { runOnFinish } from "../executions/on-finish.ts";
import type { Recorder } from "../journal/recorder.ts";
import { createRunContext } from "./run-context.ts";
import { idleMsOf, limitsOf, timeoutMsOf } from "./run-limits.ts";
import type { RunStop } from "./run-stop.ts";
import { type DiskWatch, watchDisk } from "./disk-watch.ts";
import type { SessionKeeper } from "../sessions/session-keeper.ts";
import { outcomeOfStop, stopReasonOf } from "./stop-outcome.ts";
import type { RunLinks, SuperviseOptions } from "./supervise-options.ts";
import type { InputQueue } from "./input-queue.ts";
import { workspaceKindOf } from "../workspace/workspace-kind.ts";
import { trackFiles } from "../workspace/session-files.ts";

/** What one run has beside its claim. */
export interface RunParts {
  /** As files and notices call it. */
  name: string;
  options: SuperviseOptions;
  links: RunLinks;
  stop: RunStop;
  overBudget: AbortSignal;
  input: InputQueue;
  log: Recorder;
  live: PartialText;
  questions: Questions;
  keeper: SessionKeeper;
  defects: ErrorOutcomes;
}

/** Opens what the run works with, lets its executor do its work, and closes everything again. */
export async function executeRun(claim: Claim, parts: RunParts): Promise<Outcome> {
  const { options, stop, log, keeper, name } = parts;
  const { record } = log;
  const { can } = options.executor;
  const { signal } = stop;
  const expanded = expandAgent(claim.invocation.agent, options.variables);
  if (expanded.faults.length > 0) return failed("refused", `${expanded.faults.map(describeVariableFault).join("; ")}.`);
  const invocation = { ...claim.invocation, agent: expanded.agent };
  if (invocation.fork_at_turn !== null && !can.fork_at_turn)
    return failed(
      "refused",
      `The executor ${options.executor.name} cannot fork a session at an earlier turn. Leave fork_at_turn out.`,
    );
  const hasState = can.state === true && (invocation.mode !== "start" || invocation.continues);
  const state = hasState ? await keeper.load() : null;
  if (state !== null && !state.here && !state.portable) return failed("session_not_found", notHere(invocation));
  const opened = await openDirectories(invocation, {
    ...(state === null ? {} : { saved: { ...state, files: keeper.files } }),
    name,
    directories: options.directories,
    locks: { folder: options.locks, owner: options.owner, isAlive: options.isAlive, newId: options.newId },
    signal,
    onWaiting: (holder) => record({ type: "system", subtype: "waiting_for_directory", data: holder }),
  });
  if (!opened.ok)
    return opened.reason === null ? outcomeOfStop(stopReasonOf(signal)) : failed(opened.reason, opened.message);
  if (invocation.agent.type === "autonomous") record(environmentEvent(options.startOptions));
  if (can.state && workspaceKindOf(invocation) === "scratch") keeper.track(trackFiles(opened.dirs.work));
  let forget = !can.resume && !can.fork;
  try {
    return await workIn(opened, { ...claim, invocation }, { ...parts, state }, (ended) => {
      // a session whose first run was refused has not begun
      forget ||= invocation.mode === "start" && ended.status === "failed" && ended.reason === "refused";
      forget &&= ended.status !== "parked";
    });
  } finally {
    await opened
      .close(forget)
      .catch((error: unknown) => options.onNotice(`the directories of run ${name} could not be given back`, error));
  }
}

type Opened = Extract<Awaited<ReturnType<typeof openDirectories>>, { ok: true }>;
type StatefulParts = RunParts & { state: SessionState | null };

async function workIn(
  opened: Opened,
  claim: Claim,
  parts: StatefulParts,
  onReturned: (ended: Outcome) => void,
): Promise<Outcome> {
  const { options, links, stop, log } = parts;
  const { signal, lost, clocks } = stop;
  const { invocation } = claim;
  const limits = limitsOf(invocation.agent);
  const timeoutMs = timeoutMsOf(invocation.agent, options.limits);
  const { correlation, repoRoot } = workedOn(claim, opened.dirs.work, options);
  const { run_id, attempt } = claim;
  const nested = openNestedLog({ ...options, runs: options.directories.runs, run_id, attempt, record: log.record });
  const executions = createExecutions({
    ...options,
    options: options.startOptions,
    writable: [nested.path],
    ids: {
      ...inheritedIds(run_id, correlation, repoRoot),
      DROVER_ATTEMPT: String(attempt),
      DROVER_NESTED_LOG: nested.path,
      ...(options.apiUrl === null ? {} : { DROVER_API_URL: options.apiUrl, DROVER_API_KEY: claim.attempt_token }),
    },
    dirs: opened.dirs,
    timeoutMs,
    commandLimits: limits.ofCommands,
    runLimits: limits.held,
    correlation,
    recorder: log,
    sync: links.journal.sync,
  });
  let watch: DiskWatch | null = null;
  try {
    const watching = await watchDisk({
      limits: limits.held,
      folders: opened.folders,
      except: [options.directories.stateDirectory],
      signal,
      onPassed: () => stop.abort("disk_limit"),
    });
    if (!watching.ok) return failed("dependency_missing", watching.fault.message);
    watch = watching.watch;
    clocks.begin({ timeoutMs, idleMs: idleMsOf(invocation.agent, options.limits) });
    const context = createRunContext({
      ...parts,
      claim,
      dirs: opened.dirs,
      signal,
      lost,
      hard: stop.hard,
      hasEnded: () => !stop.isOpen,
      clocks,
      executions,
      onFenced: () => stop.abort("lease_lost"),
    });
    const running = options.executor.run(invocation, context).catch(parts.defects.ofExecutor);
    const returned = await Promise.race([running, stop.givenUp]);
    const ended = returned.status === "parked" ? parkedOrFailed(returned, claim, parts) : returned;
    onReturned(ended);
    stop.close();
    await endExecutions(executions, parts);
    if (ended.status === "parked") return ended;
    const outcome = await watch.judge(ended);
    await runOnFinish(invocation.agent.on_finish, outcome, { ...options, executions, emit: log.record, signal, lost });
    await executions.end();
    return outcome;
  } finally {
    watch?.stop();
    await nested.close();
  }
}

/** A folder of the session's own lies in Drover's state, not in the repository around that. */
function workedOn(
  { invocation, correlation }: Claim,
  directory: string,
  { findCheckout }: SuperviseOptions,
): { correlation: Correlation; repoRoot?: string } {
  if (workspaceKindOf(invocation) === "scratch") return { correlation };
  const { repo_sha, repo_root } = findCheckout(directory, correlation.repo_sha);
  return { correlation: { ...correlation, repo_sha }, repoRoot: repo_root };
}

/** Nothing of a parked run is alive, so it needs a state to continue from; and one that is being stopped is over. */
function parkedOrFailed(
  parked: Parked,
  { invocation }: Claim,
  { options, stop, keeper, state }: StatefulParts,
): Outcome {
  const { signal } = stop;
  if (signal.aborted && signal.reason !== "shutdown") return outcomeOfStop(stopReasonOf(signal));
  const hasState = keeper.hasSaved || (invocation.continues && state !== null);
  return options.executor.can.park && hasState ? parked : failedInsteadOfParked(parked);
}

async function endExecutions(executions: Executions, { options, stop, log }: RunParts): Promise<void> {
  const left = await executions.end();
  if (left === 0 || stop.signal.aborted) return;
  const [programs, were, they] =
    left === 1 ? ["a program", "was", "it was"] : [`${left} programs`, "were", "they were"];
  const message = `The executor ${options.executor.name} returned while ${programs} that it had started ${were} running; ${they} ended.`;
  log.record({ type: "error", code: "left_running", message });
}

function notHere({ session_id }: Invocation): string {
  return `The session ${session_id} works with files that were not saved: they are in a project of the runner that had it, too large, or too many. Continue it there, or start a new session.`;
}
