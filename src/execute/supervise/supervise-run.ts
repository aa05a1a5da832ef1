import type { Decision, UserInput } from "../../model/executor.ts";
import type { Redactor } from "../../model/process.ts";
import type { Claim } from "../../model/runner-port.ts";
import type { StopReason } from "../../model/states.ts";
import { conceal } from "../../redact/conceal.ts";
import { createQuestions } from "./questions.ts";
import { executeRun } from "./execute-run.ts";
import { createErrorOutcomes, internalFailure } from "./error-outcome.ts";
import { createJournalSink } from "../journal/journal-sink.ts";
import { createPartialText } from "../journal/partial-text.ts";
import { shrinkOutcome } from "./shrink-outcome.ts";
import { createRecorder } from "../journal/recorder.ts";
import { createRunStop } from "./run-stop.ts";
import { createSessionKeeper } from "../sessions/session-keeper.ts";
import type { RunLinks, SuperviseOptions } from "./supervise-options.ts";
import { createInputQueue } from "./input-queue.ts";

/** A claimed run that is being supervised until it has an outcome. */
export interface SupervisedRun {
  abort(reason: StopReason): void;
  addInput(input: UserInput): void;
  answer(decision: { request_id: string; answer: Decision }): void;
  /** Parks the run if it waits for a person, to be continued later. Returns false if it does not wait or cannot park. */
  park(): boolean;
  /** Call this when the agent has used up its budget for today. */
  noteBudgetSpent(): void;
  /** Whether the run waits for a person. While it waits, it takes no slot. */
  readonly isWaiting: boolean;
  /** Resolves when the run's outcome is in the journal and its temporary directory is removed. Never rejects. */
  readonly ended: Promise<void>;
}

export function superviseRun(claim: Claim, options: SuperviseOptions, links: RunLinks): SupervisedRun {
  const { journal } = links;
  const { onNotice } = options;
  const redactor = createRunRedactor(claim, options);
  const { can } = options.executor;
  const name = `${claim.run_id}.${claim.attempt}`;
  const overBudget = new AbortController();
  const input = createInputQueue(claim.invocation.inputs);
  const log = createRecorder({
    sink: createJournalSink({
      journal,
      notify: links.notify,
      notifyLater: links.notifyLater,
      onFull: () => stop.abort("output_limit"),
      onWriteError: () => stop.abort("shutdown"), // The outcome will be the write error, whatever the executor returns.
    }),
    redactor,
    outputDelayMs: options.outputDelayMs,
  });
  const { record } = log;
  const stop = createRunStop(options, record);
  const { abort, signal, clocks } = stop;
  const errors = createErrorOutcomes({
    attemptName: name,
    executor: options.executor.name,
    signal,
    redactor,
    onNotice,
  });
  const noteBudgetSpent = (): void => {
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
    closed: AbortSignal.any([stop.lostSignal, stop.closedSignal]),
    times: options.uploads,
    random: options.random,
    record: log.recordFromExecutor,
    flush: links.flush,
    onSpent: noteBudgetSpent,
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
      links.onSlotFreed();
    },
    onSettled: clocks.resumeWork,
    monotonic: options.monotonic,
    onNotice: (message) => onNotice(`run ${name}: ${message}`),
  });
  const partialText = createPartialText(redactor, links.sendPartial);
  const cleanups: (() => Promise<void>)[] = [];
  const parts = {
    name,
    options,
    links,
    stop,
    overBudget: overBudget.signal,
    input,
    log,
    partialText,
    questions,
    keeper,
    errors,
    afterOutcome: (clean: () => Promise<void>) => void cleanups.push(clean),
  };

  async function run(): Promise<void> {
    const startedAt = options.monotonic();
    const started = { run_id: claim.run_id, attempt: claim.attempt, agent_name: claim.invocation.agent.name };
    options.onProgress?.({ ...started, ended: null });
    record({ type: "status", status: "running" });
    let outcome = await executeRun(claim, parts).catch(errors.fromRunner);
    log.endOutput();
    const smaller = shrinkOutcome(outcome);
    if (smaller) {
      record({
        type: "error",
        code: "result_truncated",
        message: "The result is too large for a report; the part that does not fit was dropped.",
      });
      outcome = smaller;
    }
    input.end();
    if (journal.writeError)
      outcome = internalFailure(`${journal.writeError.message} ${journal.writeError.next ?? ""}`.trim());
    journal.finish(redactor.value(outcome));
    options.onProgress?.({ ...started, ended: { outcome, durationMs: options.monotonic() - startedAt } });
    links.flush();
  }

  return {
    abort,
    addInput: input.push,
    answer: questions.answer,
    park: questions.park,
    noteBudgetSpent,
    get isWaiting() {
      return questions.isWaiting;
    },
    ended: run()
      .catch((error: unknown) => {
        journal.finish(errors.fromUncaught(error));
        links.flush();
      })
      .then(async () => {
        // Lets the report leave first. It is built in the microtasks that follow the flush.
        await new Promise((resolve) => setImmediate(resolve));
        for (const clean of cleanups) await clean();
      }),
  };
}

/** Also redacts the secret parameters of this run, which its program may print in any encoding. */
function createRunRedactor(
  { invocation, attempt_token }: Claim,
  { redactor, redactorWith }: SuperviseOptions,
): Redactor {
  const { agent, parameters, prompt } = invocation;
  const secrets = conceal(agent.parameters_schema, { parameters, prompt }, redactor)?.secrets ?? [];
  return redactorWith([...secrets, { name: "DROVER_API_KEY", value: attempt_token }]);
}
