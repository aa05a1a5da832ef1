import type { Decision, UserInput } from "../../model/executor.ts";
import type { Redactor } from "../../model/process.ts";
import type { Claim } from "../../model/runner-port.ts";
import type { StopReason } from "../../model/states.ts";
import { conceal } from "../../redact/conceal.ts";
import { createQuestions } from "./questions.ts";
import { executeRun } from "./execute-run.ts";
import { createErrorOutcomes, internal } from "./error-outcome.ts";
import { journalSink } from "../journal/journal-sink.ts";
import { createPartialText } from "../journal/partial-text.ts";
import { shrinkOutcome } from "./shrink-outcome.ts";
import { createRecorder } from "../journal/recorder.ts";
import { createRunStop } from "./run-stop.ts";
import { createSessionKeeper } from "../sessions/session-keeper.ts";
import type { RunLinks, SuperviseOptions } from "./supervise-options.ts";
import { createInputQueue } from "./input-queue.ts";

/** One claimed run, from here to its outcome. */
export interface SupervisedRun {
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

export function superviseRun(claim: Claim, options: SuperviseOptions, links: RunLinks): SupervisedRun {
  const { journal } = links;
  const { onNotice } = options;
  const redactor = redactorOf(claim, options);
  const { can } = options.executor;
  const name = `${claim.run_id}.${claim.attempt}`;
  const overBudget = new AbortController();
  const input = createInputQueue(claim.invocation.inputs);
  const log = createRecorder({
    sink: journalSink({
      journal,
      notify: links.notify,
      onFull: () => stop.abort("output_limit"),
      onFault: () => stop.abort("shutdown"), // the outcome is the journal's fault, whatever the executor makes of this
    }),
    redactor,
    outputDelayMs: options.outputDelayMs,
  });
  const { record } = log;
  const stop = createRunStop(options, record);
  const { abort, signal, clocks } = stop;
  const defects = createErrorOutcomes({ run: name, executor: options.executor.name, signal, redactor, onNotice });
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
    closed: AbortSignal.any([stop.lost, stop.closed]),
    times: options.uploads,
    random: options.random,
    record: log.ofExecutor,
    flush: links.flush,
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
  const live = createPartialText(redactor, links.partial);
  const parts = {
    name,
    options,
    links,
    stop,
    overBudget: overBudget.signal,
    input,
    log,
    live,
    questions,
    keeper,
    defects,
  };

  async function run(): Promise<void> {
    record({ type: "status", status: "running" });
    let outcome = await executeRun(claim, parts).catch(defects.fromRunner);
    log.endOutput();
    const smaller = shrinkOutcome(outcome);
    if (smaller) {
      record({
        type: "error",
        code: "result_truncated",
        message: "The result is larger than a run may have; what does not fit was left out.",
      });
      outcome = smaller;
    }
    input.end();
    if (journal.fault) outcome = internal(`${journal.fault.message} ${journal.fault.next ?? ""}`.trim());
    journal.finish(redactor.value(outcome));
    links.flush();
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
      journal.finish(defects.fromBug(error));
      links.flush();
    }),
  };
}

/** Finds also what the run was asked with and is secret: its program may print it, in whatever encoding. */
function redactorOf({ invocation, attempt_token }: Claim, { redactor, redactorWith }: SuperviseOptions): Redactor {
  const { agent, parameters, prompt } = invocation;
  const secrets = conceal(agent.parameters_schema, { parameters, prompt }, redactor)?.secrets ?? [];
  return redactorWith([...secrets, { name: "DROVER_API_KEY", value: attempt_token }]);
}
