import type { Claim } from "../model/runner-port.ts";
import type { ExecutionStart } from "../model/execution.ts";
import type { Answer, Delta, Executor, Outcome, RunContext, UserInput } from "../model/executor.ts";
import { describeVariableFault, expandAgent, type Variables } from "../model/expand.ts";
import type { NewId } from "../model/ids.ts";
import type { Redactor, StartCommand, StartOptions } from "../model/process.ts";
import type { FailureReason, StopReason } from "../model/states.ts";
import { openDirectories, type Places } from "./directories.ts";
import { environmentEvent } from "./environment-event.ts";
import { createExecutions, type Executions } from "./executions.ts";
import type { Journal } from "./journal.ts";
import { keepFiles, type UploadTimes } from "./keep-files.ts";
import { createLiveText } from "./live-text.ts";
import { runOnFinish } from "./on-finish.ts";
import { withoutLargeData } from "./outcome-size.ts";
import { createQuestions, type Questions } from "./questions.ts";
import { createRunRecord } from "./run-record.ts";
import { idleMsOf, idsOf, limitsOf, type TimeLimits, timeoutMsOf } from "./run-settings.ts";
import { watchRun } from "./run-watch.ts";
import { startStopClock, type StopClock } from "./stop-clock.ts";
import { outcomeOfStop, stopReasonOf } from "./stop-outcome.ts";
import type { Upload } from "./uploads.ts";
import { createInputQueue } from "./user-input.ts";

/** One claimed run, from here to its outcome. */
export interface Supervised {
  abort(reason: StopReason): void;
  answer(request_id: string, answer: Answer): void;
  input(input: UserInput): void;
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
  redactor: Redactor;
  newId: NewId;
  now: () => Date;
  monotonic: () => number;
  outputDelayMs: number;
  onFinishTimeoutMs: number;
  onNotice: (message: string, cause?: unknown) => void;
}

/** Towards the coordinator and the slots. */
export interface RunLinks {
  journal: Journal;
  poke(): void;
  hurry(): void;
  room(): Promise<void>;
  partial(delta: Delta): void;
  upload: Upload;
  onWaiting(): void;
  onGoingOn(): void;
}

export function superviseRun(claim: Claim, options: SuperviseOptions, links: RunLinks): Supervised {
  const { journal } = links;
  const { redactor, onNotice } = options;
  const controller = new AbortController();
  const { signal } = controller;
  const lost = new AbortController();
  const abort = (reason: StopReason): void => {
    controller.abort(reason);
    // these count also for what is still done for a run that was ended before
    if (reason === "lease_lost" || reason === "shutdown") lost.abort(reason);
  };
  const input = createInputQueue();
  const name = `${claim.run_id}.${claim.attempt}`;
  const timeoutMs = timeoutMsOf(claim.invocation.agent, options.limits);
  let time: StopClock | null = null;
  let silence: StopClock | null = null;
  let open = true;

  const log = createRunRecord({
    journal,
    redactor,
    outputDelayMs: options.outputDelayMs,
    poke: links.poke,
    onFull: () => abort("output_limit"),
    onFault: () => abort("shutdown"), // the outcome is the journal's fault, whatever the executor makes of this
  });
  const { record } = log;
  const live = createLiveText(redactor, links.partial);
  const questions: Questions = createQuestions({
    attended: claim.invocation.attended,
    emit: record,
    signal,
    onWaiting() {
      time?.pause();
      silence?.pause();
      links.onWaiting();
    },
    onGoingOn() {
      time?.goOn();
      silence?.goOn();
      links.onGoingOn();
    },
  });

  const contextOf = (dirs: RunContext["dirs"], executions: Executions): RunContext => ({
    signal,
    async emit(event) {
      if (!open) return onNotice(`run ${name} sent an event after its end; it was dropped`);
      silence?.restart();
      live.wholeFollows(event);
      log.ofExecutor(event);
      await links.room();
    },
    partial(delta) {
      silence?.restart();
      live.push(delta);
    },
    ask: questions.ask,
    input,
    async start(command) {
      if (journal.fault) throw journal.fault;
      return executions.start(command, signal);
    },
    usage: (usage) => record({ type: "usage", usage }),
    async keepFiles(files) {
      // a large file on a slow line says nothing for long
      silence?.pause();
      try {
        const { run_id, attempt } = claim;
        return await keepFiles(files, {
          ...options,
          run: { run_id, attempt },
          upload: links.upload,
          signal,
          lost: lost.signal,
          times: options.uploads,
          record,
          onFenced: () => abort("lease_lost"),
        });
      } finally {
        silence?.goOn();
      }
    },
    dirs,
    runnerDirectory: options.runnerDirectory,
  });

  async function carryOut(): Promise<Outcome> {
    const expanded = expandAgent(claim.invocation.agent, options.variables);
    if (expanded.faults.length > 0)
      return failed("refused", `${expanded.faults.map(describeVariableFault).join("; ")}.`);
    const invocation = { ...claim.invocation, agent: expanded.agent };
    const opened = await openDirectories(invocation, {
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
    const executions = createExecutions({
      ...options,
      options: options.startOptions,
      ids: idsOf(invocation, claim.correlation),
      dirs: opened.dirs,
      timeoutMs,
      commandLimits: limits.ofCommands,
      correlation: claim.correlation,
      append: record,
      sync: journal.sync,
    });
    let stopWatch: (() => void) | undefined;
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
      time = startStopClock(timeoutMs, () => abort("timeout"), options.monotonic);
      silence = startStopClock(idleMsOf(invocation.agent, options.limits), () => abort("idle"), options.monotonic);
      const ended = await options.executor.run(invocation, contextOf(opened.dirs, executions)).catch(bugOutcome);
      time.stop();
      silence.stop();
      await executions.settled();
      const outcome = await watch.judge(ended);
      await runOnFinish(invocation.agent.on_finish, outcome, { ...options, executions, emit: record, signal });
      await executions.settled();
      return outcome;
    } finally {
      stopWatch?.();
      await opened
        .close()
        .catch((error: unknown) => onNotice(`the directories of run ${name} could not be given back`, error));
    }
  }

  /** People read a sentence; where it happened is for the runner's own log, always: nobody can make it happen again to see. */
  const traceOf = (error: unknown): string =>
    redactor.value(error instanceof Error ? (error.stack ?? error.message) : String(error));

  /** An executor rejects on bugs only; a stop can make a bug of anything that was under way. */
  const bugOutcome = (error: unknown): Outcome => {
    if (signal.aborted) return outcomeOfStop(stopReasonOf(signal));
    onNotice(`the executor ${options.executor.name} failed at run ${name}: ${traceOf(error)}`);
    return internal(`The executor ${options.executor.name} failed unexpectedly; the runner's own log says more.`);
  };

  async function run(): Promise<void> {
    record({ type: "status", status: "running" });
    let outcome = await carryOut().catch((error: unknown) => {
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
    open = false;
    input.end();
    if (journal.fault) outcome = internal(`${journal.fault.message} ${journal.fault.next ?? ""}`.trim());
    journal.finish(redactor.value(outcome));
    links.hurry();
  }

  return {
    abort,
    answer: questions.answer,
    input: input.push,
    ended: run().catch((error: unknown) => {
      onNotice(`run ${name} ended in a defect: ${traceOf(error)}`);
      journal.finish(internal("The runner failed unexpectedly; its own log says more."));
      links.hurry();
    }),
  };
}

function failed(reason: FailureReason, message: string): Outcome {
  return { status: "failed", reason, message, exit_code: null };
}

function internal(message: string): Outcome {
  return failed("internal", message);
}
