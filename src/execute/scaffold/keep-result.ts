import type { FoundFile, OpenFile, Outcome } from "../../model/executor.ts";
import { keepsFilesAfter } from "../collect/keep-files.ts";
import { outcomeOfStop, stopReasonOf } from "../supervise/stop-outcome.ts";
import { chooseFiles } from "./choose-files.ts";
import type { Done, ExecutorDefinition, Job } from "./definition.ts";
import { findFiles } from "./find-files.ts";
import type { Inputs } from "./inputs.ts";
import { outcomeOfFailure, RunFailure } from "./run-failure.ts";

export interface Kept {
  job: Job;
  inputs: Inputs;
  /** When the work started; null if it never did. */
  since: bigint | null;
  collect: ExecutorDefinition["collectFiles"];
}

const maxEntries = 200_000;

/** Keeps the run's files and returns its outcome. */
export async function keepResult(done: Done, kept: Kept): Promise<Outcome> {
  const { job } = kept;
  const wanted = done.outcome ?? completed(done);
  if (wanted.status !== "completed" && wanted.status !== "failed") return wanted;
  const files = kept.since === null || isAbandoned(job.signal) ? [] : await collect(kept, kept.since);
  if (isAbandoned(job.signal)) return withoutFiles(wanted, job.signal);
  if (wanted.status === "completed") {
    if (files.length === 0 && wanted.text) files.push(responseFile(wanted.text));
    if (files.length === 0 && wanted.data === undefined && !done.outcome) return noOutput(wanted.exit_code);
  }
  if (files.length === 0) return wanted;
  const result = await job.context.keepFiles(files);
  if (result.ok) return wanted;
  if (wanted.status === "completed") {
    if (job.signal.aborted) return withoutFiles(wanted, job.signal);
    return uploadFailed(wanted, result.message);
  }
  // the run has already failed, so its own failure comes first
  await job.context.emit({ type: "error", code: "upload_failed", message: result.message });
  return wanted;
}

/** Is the result no longer wanted, because the run was cancelled or goes back to the queue? */
function isAbandoned(signal: AbortSignal): boolean {
  return signal.aborted && !keepsFilesAfter(stopReasonOf(signal));
}

function abandonedSignal(signal: AbortSignal): AbortSignal {
  const abandoned = new AbortController();
  const check = (): void => {
    if (isAbandoned(signal)) abandoned.abort(signal.reason);
  };
  check();
  signal.addEventListener("abort", check, { once: true });
  return abandoned.signal;
}

/** A run without its files is not completed. A run that had already failed stays failed. */
function withoutFiles(wanted: Extract<Outcome, { status: "completed" | "failed" }>, signal: AbortSignal): Outcome {
  return wanted.status === "completed" ? outcomeOfStop(stopReasonOf(signal), wanted.text ?? undefined) : wanted;
}

async function collect({ job, inputs, collect: choose }: Kept, since: bigint): Promise<FoundFile[]> {
  const found = await findFiles({
    root: job.workDir,
    since,
    inputs: inputs.names,
    maxEntries,
    signal: abandonedSignal(job.signal),
  });
  if (isAbandoned(job.signal)) return [];
  const wanted = choose ? await choose(found.files, job) : found.files;
  const { files, leftOut } = await chooseFiles(wanted, job.invocation.executor_config);
  const all = [...found.leftOut, ...leftOut];
  if (all.length > 0 || found.cut)
    await job.context.emit({
      type: "system",
      subtype: "files_left_out",
      data: {
        count: all.length,
        files: all.slice(0, 100),
        ...(found.cut ? { looked_at_first: maxEntries } : {}),
      },
    });
  return files;
}

/** Served from memory, because any path on disk could be taken by a file of the run. */
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

function noOutput(exitCode: number | null): Outcome {
  return outcomeOfFailure(
    new RunFailure("no_output", "The run finished without a result: it produced no file and no text.", { exitCode }),
  );
}

function uploadFailed(wanted: Extract<Outcome, { status: "completed" }>, message: string): Outcome {
  return {
    ...wanted,
    status: "failed",
    reason: "upload_failed",
    message: `The run's files could not be uploaded: ${message}`,
    text: wanted.text ?? "",
  };
}
