import type { Claim } from "../model/runner-port.ts";
import type { RunEvent } from "../model/event.ts";
import type { ExecutionStart } from "../model/execution.ts";
import type { Answer, Delta, Executor, Outcome, RunContext, UserInput } from "../model/executor.ts";
import { describeVariableFault, expandAgent, type Variables } from "../model/expand.ts";
import type { NewId } from "../model/ids.ts";
import type { Redactor, StartCommand, StartOptions } from "../model/process.ts";
import type { StopReason } from "../model/states.ts";
import { openDirectories, type Places } from "./directories.ts";
import { createExecutions, type Executions } from "./executions.ts";
import type { Journal } from "./journal.ts";
import { runOnFinish } from "./on-finish.ts";
import { createOutputEvents } from "./output-events.ts";
import { createQuestions, type Questions } from "./questions.ts";
import { idleMsOf, idsOf, type TimeLimits, timeoutMsOf } from "./run-settings.ts";
import { startStopClock, type StopClock } from "./stop-clock.ts";
import { outcomeOfStop, stopReasonOf } from "./stop-outcome.ts";
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
  onWaiting(): void;
  onGoingOn(): void;
}

export function superviseRun(claim: Claim, options: SuperviseOptions, links: RunLinks): Supervised {
  const { journal } = links;
  const { redactor, onNotice } = options;
  const controller = new AbortController();
  const { signal } = controller;
  const abort = (reason: StopReason): void => controller.abort(reason);
  const input = createInputQueue();
  const name = `${claim.run_id}.${claim.attempt}`;
  const timeoutMs = timeoutMsOf(claim.invocation.agent, options.limits);
  let time: StopClock | null = null;
  let silence: StopClock | null = null;
  let open = true;

  /** A log that is full or cannot be written ends the run; what comes after that is not taken. */
  const append = (event: RunEvent): void => {
    try {
      if (!journal.append(event)) abort("output_limit");
    } catch (error) {
      if (journal.fault === null) throw error;
      abort("shutdown"); // the outcome is the journal's fault, whatever the executor makes of this
    }
    links.poke();
  };
  const output = createOutputEvents({ redactor, write: append, delayMs: options.outputDelayMs });
  const record = (event: RunEvent): void => {
    output.flush();
    append(redactor.value(event));
  };
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
      if (event.type === "output") output.push(event);
      else if (notTheExecutors.has(event.type))
        record({ type: "error", message: `An executor may not send "${event.type}" events; it was dropped.` });
      else record(event);
      await links.room();
    },
    partial: links.partial,
    ask: questions.ask,
    input,
    async start(command) {
      if (journal.fault) throw journal.fault;
      return executions.start(command, signal);
    },
    usage: (usage) => record({ type: "usage", usage }),
    dirs,
  });

  async function carryOut(): Promise<Outcome> {
    const expanded = expandAgent(claim.invocation.agent, options.variables);
    if (expanded.faults.length > 0) return refused(`${expanded.faults.map(describeVariableFault).join("; ")}.`);
    const opened = await openDirectories(name, claim.invocation, options.places);
    if (!opened.ok) return refused(opened.message);
    const invocation = { ...claim.invocation, agent: expanded.agent };
    const executions = createExecutions({
      ...options,
      options: options.startOptions,
      ids: idsOf(invocation, claim.correlation),
      dirs: opened.dirs,
      timeoutMs,
      correlation: claim.correlation,
      append: record,
      sync: journal.sync,
    });
    try {
      time = startStopClock(timeoutMs, () => abort("timeout"), options.monotonic);
      silence = startStopClock(idleMsOf(invocation.agent, options.limits), () => abort("idle"), options.monotonic);
      const outcome = await options.executor.run(invocation, contextOf(opened.dirs, executions)).catch(bugOutcome);
      time.stop();
      silence.stop();
      await executions.settled();
      await runOnFinish(invocation.agent.on_finish, outcome, { ...options, executions, emit: record, signal });
      await executions.settled();
      return outcome;
    } finally {
      await opened
        .remove()
        .catch((error: unknown) => onNotice(`the temporary folder of run ${name} could not be removed`, error));
    }
  }

  /** An executor rejects on bugs only; a stop can make a bug of anything that was under way. */
  const bugOutcome = (error: unknown): Outcome => {
    if (signal.aborted) return outcomeOfStop(stopReasonOf(signal));
    onNotice(`the executor ${options.executor.name} failed at run ${name}`, error);
    return internal(`The executor ${options.executor.name} failed unexpectedly; the runner's own log says more.`);
  };

  async function run(): Promise<void> {
    record({ type: "status", status: "running" });
    let outcome = await carryOut().catch((error: unknown) => {
      onNotice(`run ${name} could not be carried out`, error);
      return internal("The runner failed unexpectedly; its own log says more.");
    });
    output.end();
    if (isTooLarge(outcome)) {
      record({
        type: "error",
        code: "result_truncated",
        message: "The result is larger than a run may have; its data was left out.",
      });
      outcome = withoutData(outcome);
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
      onNotice(`run ${name} ended in a defect`, error);
      journal.finish(internal("The runner failed unexpectedly; its own log says more."));
      links.hurry();
    }),
  };
}

/** Those are the scaffold's and the coordinator's: an executor that could write them could forge the record. */
const notTheExecutors: ReadonlySet<RunEvent["type"]> = new Set([
  "status",
  "result",
  "execution_started",
  "execution_ended",
  "permission_request",
  "permission_decision",
]);

/** With the last events it has to fit into one report. */
const maxOutcomeBytes = 17 * 1024 * 1024;

function isTooLarge(outcome: Outcome): boolean {
  if (outcome.status !== "completed" && outcome.status !== "failed") return false;
  return outcome.data !== undefined && Buffer.byteLength(JSON.stringify(outcome)) > maxOutcomeBytes;
}

function withoutData(outcome: Outcome): Outcome {
  if (outcome.status !== "completed" && outcome.status !== "failed") return outcome;
  const { data: _data, ...rest } = outcome;
  return rest;
}

function refused(message: string): Outcome {
  return { status: "failed", reason: "refused", message, exit_code: null };
}

function internal(message: string): Outcome {
  return { status: "failed", reason: "internal", message, exit_code: null };
}
