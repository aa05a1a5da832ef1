import type { Claim } from "../../model/runner-port.ts";
import type { Executor, RunContext } from "../../model/executor.ts";
import { type Questions, undeclaredQuestion } from "./questions.ts";
import type { Executions } from "../executions/executions.ts";
import type { Journal } from "../journal/journal.ts";
import { keepFiles, type UploadTimes } from "../collect/keep-files.ts";
import type { PartialText } from "../journal/partial-text.ts";
import type { Recorder } from "../journal/recorder.ts";
import type { RunClocks } from "./run-clocks.ts";
import type { SessionKeeper } from "../sessions/session-keeper.ts";
import type { Upload } from "../collect/upload.ts";

export interface ContextParts {
  claim: Claim;
  options: {
    executor: Pick<Executor, "name" | "can">;
    runnerDirectory: string;
    uploads: UploadTimes;
    random: () => number;
    monotonic: () => number;
    onNotice: (message: string) => void;
  };
  links: { journal: Journal; waitForJournalSpace(): Promise<void>; upload: Upload };
  dirs: RunContext["dirs"];
  signal: AbortSignal;
  /** Aborted when the attempt is lost or the runner shuts down. */
  lostSignal: AbortSignal;
  /** Kills the process that the executor runs in. */
  killSignal: AbortSignal;
  overBudget: AbortSignal;
  /** Whether the executor has returned or Drover gave up on it. Nothing may follow the outcome. */
  hasEnded: () => boolean;
  input: RunContext["input"];
  state: Awaited<ReturnType<RunContext["session"]["load"]>>;
  log: Recorder;
  partialText: PartialText;
  clocks: RunClocks;
  questions: Questions;
  keeper: SessionKeeper;
  executions: Executions;
  onFenced: () => void;
}

/** The interface through which an executor acts on its run. */
export function createRunContext(parts: ContextParts): RunContext {
  const { claim, options, links, dirs, signal, log, partialText, clocks, executions } = parts;
  const { journal } = links;
  const name = `${claim.run_id}.${claim.attempt}`;
  /** Returns false, and reports the dropped item, if the run has ended. */
  const checkOpen = (item: string): boolean => {
    if (parts.hasEnded()) options.onNotice(`run ${name} sent ${item} after it had ended; it was dropped`);
    return !parts.hasEnded();
  };
  return {
    signal,
    overBudget: parts.overBudget,
    async emit(event) {
      if (!checkOpen("an event")) return;
      clocks.noteActivity();
      partialText.completeMessage(event);
      log.recordFromExecutor(event);
      await links.waitForJournalSpace();
    },
    partial(delta) {
      if (!checkOpen("text")) return;
      clocks.noteActivity();
      partialText.push(delta);
    },
    async ask(question) {
      if (!options.executor.can.ask) {
        const message = undeclaredQuestion(options.executor.name);
        log.record({ type: "error", code: "undeclared_ask", message });
        throw new Error(message);
      }
      return checkOpen("a question") ? parts.questions.ask(question) : { decision: "stop" };
    },
    input: parts.input,
    async start(command) {
      if (journal.writeError) throw journal.writeError;
      if (parts.hasEnded()) throw new Error(`run ${name} has ended; it cannot start ${command.executable}`);
      return executions.start(command, signal);
    },
    startHost: (command) => executions.startExecutorProcess(command, parts.killSignal),
    usage(usage) {
      if (checkOpen("its usage")) log.record({ type: "usage", usage });
    },
    async keepFiles(files) {
      if (!checkOpen("files")) return { ok: false, message: "the run has ended." };
      clocks.pauseUpload();
      try {
        const { run_id, attempt } = claim;
        return await keepFiles(files, {
          ...options,
          run: { run_id, attempt },
          upload: links.upload,
          signal,
          lostSignal: parts.lostSignal,
          times: options.uploads,
          record: log.record,
          onFenced: parts.onFenced,
        });
      } finally {
        clocks.resumeUpload();
      }
    },
    session: {
      load: () => Promise.resolve(parts.state),
      async save(format, bytes, saveOptions) {
        if (!checkOpen("the state of its session")) return;
        clocks.noteActivity();
        for (const event of saveOptions?.events ?? []) partialText.completeMessage(event);
        if (!saveOptions?.last) return parts.keeper.save(format, bytes, saveOptions);
        // Saving a large state over a slow connection has its own time limit.
        clocks.pauseUpload();
        await parts.keeper.save(format, bytes, saveOptions).finally(clocks.resumeUpload);
      },
    },
    dirs,
    runnerDirectory: options.runnerDirectory,
  };
}
