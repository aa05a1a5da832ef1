import type { Claim } from "../model/runner-port.ts";
import type { Correlation, ExecutionStart } from "../model/execution.ts";
import type { Decision, Delta, Executor, Invocation, Outcome, Parked, UserInput } from "../model/executor.ts";
import { describeVariableFault, expandAgent, type Variables } from "../model/expand.ts";
import type { NewId } from "../model/ids.ts";
import type { Redactor, StartCommand, StartOptions } from "../model/process.ts";
import type { SessionState } from "../model/session-state.ts";
import type { StopReason } from "../model/states.ts";
import { defaultGraceMs } from "../process/supervise.ts";
import { createQuestions } from "./ask.ts";
import { isOutOfDescriptors } from "./descriptors.ts";
import { openDirectories, type Places } from "./directories.ts";
import { failed, failedInPlaceOf } from "../model/outcome.ts";
import { environmentEvent } from "./environment-event.ts";
import { createExecutions } from "./executions.ts";
import { inheritedIds } from "./execution-record.ts";
import { journalSink } from "./journal-sink.ts";
import type { Journal } from "./journal.ts";
import type { UploadTimes } from "./keep-files.ts";
import { createLiveText } from "./live-text.ts";
import { runOnFinish } from "./on-finish.ts";
import { withoutLargeData } from "./outcome-size.ts";
import { createRecorder } from "./recorder.ts";
import { createRunClocks } from "./run-clocks.ts";
import { createRunContext } from "./run-context.ts";
import { outcomeOfFailure, RunFailure } from "./scaffold/run-failure.ts";
import { idleMsOf, limitsOf, type TimeLimits, timeoutMsOf } from "./run-settings.ts";
import { watchRun } from "./run-watch.ts";
import { createSessionKeeper } from "./session-keeper.ts";
import type { SessionPort } from "./session-port.ts";
import { outcomeOfStop, stopReasonOf, unresponsive } from "./stop-outcome.ts";
import type { Upload } from "./uploads.ts";
import { createInputQueue } from "./user-input.ts";
import { trackFiles } from "./workspace/session-files.ts";
import { workspaceOf } from "./workspace/kind.ts";

/** One claimed run, from here to its outcome. */
export interface Supervised {
  abort(reason: StopReason): void;
  input(input: UserInput): void;
  answer(given: { request_id: string; answer: Decision }): void;
  /** It waits for a person no longer, and ends to be continued later. False where it does not wait, or cannot park. */
  park(): boolean;
  /** Its agent has spent what it may spend today. */
  spent(): void;
  /** For a person: it takes no slot. */
  readonly waiting: boolean;
  /** Everything of it has ended and its outcome is in the journal. Never rejects. */
  readonly ended: Promise<void>;
}

/** What all runs of one registration share. */
export interface SuperviseOptions {
  executor: Executor;
  /** Where a relative command is looked for first. */
  runnerDirectory: string;
  places: Places;
  limits: TimeLimits;
  variables: Variables;
  start: StartCommand;
  startOptions: Omit<StartOptions, "ids" | "output" | "stdin">;
  owner: ExecutionStart["owner"];
  /** Whether somebody who holds a directory still lives. */
  isAlive: (owner: ExecutionStart["owner"]) => boolean;
  /** Where runners say which directories they work in. */
  locks: string;
  uploads: UploadTimes;
  random: () => number;
  /** The commit that a run in this directory works on, unless one is given. */
  findWorkedOn: (directory: string, given: string | null) => { repo_sha: string | null; repo_root: string };
  redactor: Redactor;
  newId: NewId;
  now: () => Date;
  monotonic: () => number;
  outputDelayMs: number;
  onFinishTimeoutMs: number;
  /** How long after a stop an executor may take to settle, beyond the grace of its programs, before it is given up. */
  reactMs?: number;
  onNotice: (message: string, cause?: unknown) => void;
}

/** Towards the coordinator and the slots. */
export interface RunLinks {
  journal: Journal;
  poke(): void;
  hurry(): void;
  slotFreed(): void;
  room(): Promise<void>;
  partial(delta: Delta): void;
  upload: Upload;
  sessions: SessionPort;
}

export function superviseRun(claim: Claim, options: SuperviseOptions, links: RunLinks): Supervised {
  const { journal } = links;
  const { redactor, onNotice } = options;
  const { can } = options.executor;
  const controller = new AbortController();
  const { signal } = controller;
  const lost = new AbortController();
  /** The executor has returned, or was given up. */
  const closed = new AbortController();
  const hard = new AbortController();
  const overBudget = new AbortController();
  const input = createInputQueue(claim.invocation.inputs);
  const name = `${claim.run_id}.${claim.attempt}`;
  const timeoutMs = timeoutMsOf(claim.invocation.agent, options.limits);
  const graceMs = options.startOptions.graceMs ?? defaultGraceMs;
  let open = true;
  let giveUp!: () => void;
  /** A stopped run ends by this at the latest: an executor that does not react must not hold the slot. */
  const givenUp = new Promise<Outcome>((resolve) => {
    giveUp = () => {
      if (!open) return;
      const { outcome, event } = unresponsive(options.executor.name, stopReasonOf(signal), "was given up");
      record(event);
      resolve(outcome);
    };
  });
  const abort = (reason: StopReason): void => {
    controller.abort(reason);
    const hurried = options.startOptions.hurry?.aborted === true;
    if (open && (!clocks.hasDeadline || hurried)) clocks.startDeadline(hurried ? 1 : graceMs);
    // these count also for what is still done for a run that was ended before
    if (reason === "lease_lost" || reason === "shutdown") lost.abort(reason);
  };
  const clocks = createRunClocks({
    abort,
    // a process that the executor runs in is killed, and then the executor has one last moment
    onGraceOver: () => hard.abort(signal.reason),
    reactMs: options.reactMs ?? 2000,
    onGivenUp: giveUp,
    monotonic: options.monotonic,
  });

  const log = createRecorder({
    sink: journalSink({
      journal,
      poke: links.poke,
      onFull: () => abort("output_limit"),
      onFault: () => abort("shutdown"), // the outcome is the journal's fault, whatever the executor makes of this
    }),
    redactor,
    outputDelayMs: options.outputDelayMs,
  });
  const { record } = log;
  /** The agent has spent what it may spend today. */
  const spent = (): void => {
    if (can.park) overBudget.abort();
    else abort("budget");
  };
  const keeper = createSessionKeeper({
    run: { run_id: claim.run_id, attempt: claim.attempt },
    port: links.sessions,
    journal,
    redactor,
    resumes: claim.invocation.mode !== "fork" || claim.invocation.continues,
    signal,
    closed: AbortSignal.any([lost.signal, closed.signal]),
    times: options.uploads,
    random: options.random,
    record: log.ofExecutor,
    hurry: links.hurry,
    onSpent: spent,
    onFenced: () => abort("lease_lost"),
  });
  const questions = createQuestions({
    invocation: claim.invocation,
    canPark: can.park === true,
    signal,
    record,
    redact: redactor.value,
    onWaiting() {
      clocks.pauseWork();
      links.slotFreed();
    },
    onSettled: clocks.resumeWork,
    monotonic: options.monotonic,
    onNotice: (message) => onNotice(`run ${name}: ${message}`),
  });
  let state: SessionState | null = null;
  const live = createLiveText(redactor, links.partial);

  /** A folder of the session's own lies in Drover's state, not in the repository around that. */
  const workedOn = (invocation: Invocation, directory: string): { correlation: Correlation; repoRoot?: string } => {
    const { correlation } = claim;
    if (workspaceOf(invocation) === "scratch") return { correlation };
    const { repo_sha, repo_root } = options.findWorkedOn(directory, correlation.repo_sha);
    return { correlation: { ...correlation, repo_sha }, repoRoot: repo_root };
  };

  async function carryOut(): Promise<Outcome> {
    const expanded = expandAgent(claim.invocation.agent, options.variables);
    if (expanded.faults.length > 0)
      return failed("refused", `${expanded.faults.map(describeVariableFault).join("; ")}.`);
    const invocation = { ...claim.invocation, agent: expanded.agent };
    if (invocation.fork_at_turn !== null && !can.fork_at_turn)
      return failed(
        "refused",
        `The executor ${options.executor.name} cannot fork a session at an earlier turn. Leave fork_at_turn out.`,
      );
    if (can.state && (invocation.mode !== "start" || invocation.continues)) state = await keeper.load();
    const isScratch = workspaceOf(invocation) === "scratch";
    if (state !== null && !state.here && !state.portable) return failed("session_not_found", notHere(invocation));
    const opened = await openDirectories(invocation, {
      ...(state === null ? {} : { saved: { ...state, files: keeper.files } }),
      name,
      places: options.places,
      locks: { folder: options.locks, owner: options.owner, isAlive: options.isAlive, newId: options.newId },
      signal,
      onWaiting: (holder) => record({ type: "system", subtype: "waiting_for_directory", data: holder }),
    });
    if (!opened.ok)
      return opened.reason === null ? outcomeOfStop(stopReasonOf(signal)) : failed(opened.reason, opened.message);
    const limits = limitsOf(invocation.agent);
    if (invocation.agent.type === "autonomous") record(environmentEvent(options.startOptions));
    const { correlation, repoRoot } = workedOn(invocation, opened.dirs.work);
    const executions = createExecutions({
      ...options,
      options: options.startOptions,
      ids: { ...inheritedIds(claim.run_id, correlation, repoRoot), DROVER_ATTEMPT: String(claim.attempt) },
      dirs: opened.dirs,
      timeoutMs,
      commandLimits: limits.ofCommands,
      runLimits: limits.held,
      correlation,
      recorder: log,
      sync: journal.sync,
    });
    let stopWatch: (() => void) | undefined;
    if (can.state && isScratch) keeper.track(trackFiles(opened.dirs.work));
    let forget = !can.resume && !can.fork;
    try {
      const watching = await watchRun({
        limits: limits.held,
        folders: opened.folders,
        except: [options.places.stateDirectory],
        signal,
        onPassed: () => abort("disk_limit"),
      });
      if (!watching.ok) return failed("dependency_missing", watching.fault.message);
      const { watch } = watching;
      stopWatch = watch.stop;
      clocks.begin({ timeoutMs, idleMs: idleMsOf(invocation.agent, options.limits) });
      const context = createRunContext({
        claim,
        options,
        links,
        dirs: opened.dirs,
        signal,
        lost: lost.signal,
        hard: hard.signal,
        overBudget: overBudget.signal,
        hasEnded: () => !open,
        input,
        state,
        log,
        live,
        clocks,
        questions,
        keeper,
        executions,
        onFenced: () => abort("lease_lost"),
      });
      const running = options.executor.run(invocation, context).catch(bugOutcome);
      const returned = await Promise.race([running, givenUp]);
      const ended = returned.status === "parked" ? parkedOrFailed(returned) : returned;
      // a session whose first run was refused has not begun
      forget ||= invocation.mode === "start" && ended.status === "failed" && ended.reason === "refused";
      forget &&= ended.status !== "parked";
      open = false;
      closed.abort();
      clocks.end();
      const left = await executions.end();
      if (left > 0 && !signal.aborted) {
        const message = `The executor ${options.executor.name} returned while ${left === 1 ? "a program" : `${left} programs`} that it had started ${left === 1 ? "was" : "were"} running; ${left === 1 ? "it was" : "they were"} ended.`;
        record({ type: "error", code: "left_running", message });
      }
      if (ended.status === "parked") return ended;
      const outcome = await watch.judge(ended);
      const stop = { signal, lost: lost.signal };
      await runOnFinish(invocation.agent.on_finish, outcome, { ...options, executions, emit: record, ...stop });
      await executions.end();
      return outcome;
    } finally {
      stopWatch?.();
      await opened
        .close(forget)
        .catch((error: unknown) => onNotice(`the directories of run ${name} could not be given back`, error));
    }
  }

  /** Nothing of a parked run is alive, so it needs a state to continue from; and one that is being stopped is over. */
  const parkedOrFailed = (parked: Parked): Outcome => {
    if (signal.aborted && signal.reason !== "shutdown") return outcomeOfStop(stopReasonOf(signal));
    const hasState = keeper.hasSaved || (claim.invocation.continues && state !== null);
    return can.park && hasState ? parked : failedInPlaceOf(parked);
  };

  /** People read a sentence; where it happened is for the runner's own log, always: nobody can make it happen again to see. */
  const traceOf = (error: unknown): string =>
    redactor.value(error instanceof Error ? (error.stack ?? error.message) : String(error));

  /** An executor rejects on bugs only; a stop can make a bug of anything that was under way. */
  const bugOutcome = (error: unknown): Outcome => {
    if (signal.aborted) return outcomeOfStop(stopReasonOf(signal));
    if (isOutOfDescriptors(error)) return outOfDescriptors(error);
    onNotice(`the executor ${options.executor.name} failed at run ${name}: ${traceOf(error)}`);
    return internal(`The executor ${options.executor.name} failed unexpectedly; the runner's own log says more.`);
  };

  async function run(): Promise<void> {
    record({ type: "status", status: "running" });
    let outcome = await carryOut().catch((error: unknown) => {
      if (signal.aborted && error === signal.reason) return outcomeOfStop(stopReasonOf(signal));
      if (error instanceof RunFailure) return outcomeOfFailure(error);
      if (isOutOfDescriptors(error)) return outOfDescriptors(error);
      onNotice(`run ${name} could not be carried out: ${traceOf(error)}`);
      return internal("The runner failed unexpectedly; its own log says more.");
    });
    log.endOutput();
    const smaller = withoutLargeData(outcome);
    if (smaller) {
      record({
        type: "error",
        code: "result_truncated",
        message: "The result is larger than a run may have; its data was left out.",
      });
      outcome = smaller;
    }
    input.end();
    if (journal.fault) outcome = internal(`${journal.fault.message} ${journal.fault.next ?? ""}`.trim());
    journal.finish(redactor.value(outcome));
    links.hurry();
  }

  return {
    abort,
    input: input.push,
    answer: questions.answer,
    park: questions.park,
    spent,
    get waiting() {
      return questions.waiting;
    },
    ended: run().catch((error: unknown) => {
      onNotice(`run ${name} ended in a defect: ${traceOf(error)}`);
      journal.finish(internal("The runner failed unexpectedly; its own log says more."));
      links.hurry();
    }),
  };
}

function notHere({ session_id }: Invocation): string {
  return `The session ${session_id} works with files that were not saved: they are in a project of the runner that had it, too large, or too many. Continue it there, or start a new session.`;
}

function outOfDescriptors(error: Error): Outcome {
  return internal(
    `The runner ran out of file descriptors (${error.message}). Raise its \`ulimit -n\`, or give it fewer slots.`,
  );
}

function internal(message: string): Outcome {
  return failed("internal", message);
}
