import type { FoundFile, OpenFile, Outcome } from "../../model/executor.ts";
import { keepsFilesAfter } from "../collect/keep-files.ts";
import { toStopOutcome, getStopReason } from "../supervise/stop-outcome.ts";
import { chooseFiles } from "./choose-files.ts";
import type { Done, ExecutorDefinition, Job } from "./definition.ts";
import { errorCode, findFiles, vanishedCodes } from "./find-files.ts";
import type { Inputs } from "./inputs.ts";
import { toFailureOutcome, RunFailure } from "./run-failure.ts";

export interface KeepOptions {
  job: Job;
  inputs: Inputs;
  /** When the work started; null if it never did. */
  since: bigint | null;
  collect: ExecutorDefinition["collectFiles"];
}

const maxEntries = 200_000;

/** Keeps the run's files and returns its outcome. */
export async function keepResult(done: Done, options: KeepOptions): Promise<Outcome> {
  const { job } = options;
  const outcome = done.outcome ?? completed(done);
  if (outcome.status !== "completed" && outcome.status !== "failed") return outcome;
  const files =
    options.since === null || isAbandoned(job.signal) ? [] : await collectResultFiles(options, options.since);
  if (isAbandoned(job.signal)) return withoutFiles(outcome, job.signal);
  if (outcome.status === "completed") {
    if (files.length === 0 && outcome.text) files.push(responseFile(outcome.text));
    if (files.length === 0 && outcome.data === undefined && !done.outcome) return noOutputFailure(outcome.exit_code);
  }
  if (files.length === 0) return outcome;
  const result = await job.context.keepFiles(files);
  if (result.ok) return outcome;
  if (outcome.status === "completed") {
    if (job.signal.aborted) return withoutFiles(outcome, job.signal);
    return toUploadFailure(outcome, result.message);
  }
  // The run has already failed, so keep its own failure.
  await job.context.emit({ type: "error", code: "upload_failed", message: result.message });
  return outcome;
}

/** Whether the result is no longer needed, because the run was cancelled or returns to the queue. */
function isAbandoned(signal: AbortSignal): boolean {
  return signal.aborted && !keepsFilesAfter(getStopReason(signal));
}

function createAbandonedSignal(signal: AbortSignal): AbortSignal {
  const abandoned = new AbortController();
  const check = (): void => {
    if (isAbandoned(signal)) abandoned.abort(signal.reason);
  };
  check();
  signal.addEventListener("abort", check, { once: true });
  return abandoned.signal;
}

/** A run without its files is not completed. A run that had already failed stays failed. */
function withoutFiles(outcome: Extract<Outcome, { status: "completed" | "failed" }>, signal: AbortSignal): Outcome {
  return outcome.status === "completed" ? toStopOutcome(getStopReason(signal), outcome.text ?? undefined) : outcome;
}

async function collectResultFiles({ job, inputs, collect: choose }: KeepOptions, since: bigint): Promise<FoundFile[]> {
  const search = await findFiles({
    root: job.workDir,
    since,
    inputs: inputs.names,
    maxEntries,
    signal: createAbandonedSignal(job.signal),
  }).catch((error: unknown) => {
    if (!vanishedCodes.has(errorCode(error))) throw error;
    throw new RunFailure("refused", `${job.workDir} was replaced by a link or removed, so its files cannot be read.`);
  });
  if (isAbandoned(job.signal)) return [];
  const chosenFiles = choose ? await choose(search.files, job) : search.files;
  const { files, skipped } = await chooseFiles(chosenFiles, job.invocation.executor_config);
  const allSkipped = [...search.skipped, ...skipped];
  if (allSkipped.length > 0 || search.isTruncated)
    await job.context.emit({
      type: "system",
      subtype: "files_left_out",
      data: {
        count: allSkipped.length,
        files: allSkipped.slice(0, 100),
        ...(search.isTruncated ? { looked_at_first: maxEntries } : {}),
      },
    });
  return files;
}

/** Read from memory, because the run may have a file at any path on disk. */
function responseFile(text: string): FoundFile {
  const content = Buffer.from(text);
  const size = content.length;
  const open = (): Promise<OpenFile> =>
    Promise.resolve({
      read: ({ buffer, position }) => Promise.resolve({ bytesRead: content.copy(buffer, 0, position) }),
      stat: () => Promise.resolve({ size }),
      close: () => Promise.resolve(),
    });
  return { path: "response.txt", size, open };
}

function completed({ text, data, exit_code }: Done): Extract<Outcome, { status: "completed" }> {
  return {
    status: "completed",
    exit_code: exit_code ?? null,
    text: text ?? null,
    ...(data === undefined ? {} : { data }),
  };
}

function noOutputFailure(exitCode: number | null): Outcome {
  return toFailureOutcome(
    new RunFailure("no_output", "The run finished without a result: it produced no file and no text.", { exitCode }),
  );
}

function toUploadFailure(outcome: Extract<Outcome, { status: "completed" }>, message: string): Outcome {
  return {
    ...outcome,
    status: "failed",
    reason: "upload_failed",
    message: `The run's files could not be uploaded: ${message}`,
    text: outcome.text ?? "",
  };
}
