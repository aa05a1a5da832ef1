import { HostError, RequestError } from "../model/errors.ts";
import type { StoredEvent } from "../model/event.ts";
import type { Delta } from "../model/executor.ts";
import type { Run } from "../model/run.ts";
import type { ApiClient } from "../wire/client.ts";
import { askAtTerminal } from "./terminal-questions.ts";
import { canAsk } from "./can-ask.ts";
import { truncateToLine, describeEvent, toOutput, toWarning } from "./event-line.ts";
import { isTerminal, write, writeContent } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { createLiveText, type LiveText } from "./live-text.ts";
import type { CommandInput } from "./options.ts";
import { describeEnd } from "./describe-end.ts";
import { describeParked } from "./describe-parked.ts";
import { describeWaiting } from "./describe-waiting.ts";
import { withRetries } from "./with-retries.ts";
import { toHintId } from "./short-ids.ts";
import type { SubmittedRun } from "./submit-run.ts";
import { toExitCode } from "./run-exit-code.ts";
import { watchPending } from "./pending-notice.ts";
import { findDroverCommand } from "./drover-command.ts";

/** Follows a submitted run until it ends or is parked, and returns the exit code of the CLI command. */
export async function followRun(client: ApiClient, submitted: SubmittedRun, input: CommandInput): Promise<number> {
  const { run } = submitted;
  const { options } = input;
  if (options["detach"]) {
    write(1, options["json"] ? toJsonLine(run) : `${run.run_id}\n`);
    if (!options["quiet"]) write(2, `Watch it: ${findDroverCommand()} runs events ${toHintId(run.run_id)}\n`);
    return 0;
  }
  stopOnSignal(client, run.run_id);
  const summary: RunSummary = {
    stdout: "",
    stderr: "",
    lastMessage: "",
    hasFiles: false,
    canResume: false,
    stopReason: null,
    signal: null,
  };
  // A run that has already ended, because its idempotency key was used before, is shown from its log.
  const currentRun = await showEvents(client, run, summary, input);
  if (options["json"]) write(1, toJsonLine(currentRun));
  else if (currentRun.status === "parked") {
    if (!options["quiet"]) write(2, await describeParked(client, currentRun));
  } else {
    if (submitted.type !== "procedural") printResult(currentRun, summary, input);
    if (!options["quiet"]) await printNextSteps(client, currentRun, submitted, summary);
  }
  return toExitCode(currentRun, submitted.type, summary.signal);
}

/** Collected from a run's events, so that the closing lines repeat nothing and the exit code is known. */
interface RunSummary {
  /** The tail of its stdout. */
  stdout: string;
  /** The beginning of its stderr. */
  stderr: string;
  /** The agent's last message. */
  lastMessage: string;
  hasFiles: boolean;
  /** Whether the executor reported a session that can be resumed. */
  canResume: boolean;
  /** Why it was stopped, and by whom. */
  stopReason: string | null;
  /** The signal that ended its command. */
  signal: string | null;
}

/** How much of each output stream the summary keeps. */
const maxCharacters = 16 * 1024;

/** Prints output and warnings as they arrive, and other events only on a terminal. Returns when the run ends or is parked. */
async function showEvents(client: ApiClient, run: Run, summary: RunSummary, input: CommandInput): Promise<Run> {
  const { run_id } = run;
  const { quiet, json } = input.options;
  const reportsWaiting = !quiet && !json && run.finished_at === null;
  let lastStatus: string | null = null;
  const liveText = showsProgress(input) ? createLiveText((text) => writeAbove(() => write(2, text))) : null;
  const questionPrompt = run.attended && canAsk(input) ? askAtTerminal(client, run, input.env) : null;
  const writeAbove = (writeText: () => void): void =>
    questionPrompt ? questionPrompt.writeAbove(writeText) : writeText();
  const onPartial =
    liveText &&
    ((delta: Delta) => {
      if (delta.kind === "assistant") liveText.showPiece(delta.text);
    });
  const pendingNotice = watchPending(client, run_id, input, (text) => {
    liveText?.endLine();
    writeAbove(() => write(2, text));
  });
  try {
    for await (const stored of client.runs.follow(run_id, onPartial ? { onPartial } : {})) {
      updateSummary(stored, summary);
      pendingNotice?.onEvent(stored);
      const { event } = stored;
      const isRepeated = event.type === "status" && !event.reason && event.status === lastStatus;
      if (event.type === "status") lastStatus = event.status;
      const isAtPrompt = questionPrompt !== null && isQuestionEvent(stored);
      if (isAtPrompt) liveText?.endLine();
      questionPrompt?.onEvent(stored);
      if (event.type === "status" && event.status === "waiting" && reportsWaiting && !questionPrompt) {
        liveText?.endLine();
        write(2, describeWaiting(client, run, event.reason ?? "a tool"));
      } else if (!isAtPrompt && !isRepeated) showEvent(stored, liveText, input, writeAbove);
      if (isParked(stored)) {
        const current = await withRetries(() => client.runs.get(run_id));
        if (current.status === "parked") return current;
      }
    }
  } finally {
    pendingNotice?.close();
    liveText?.end();
    questionPrompt?.close();
  }
  return withRetries(() => client.runs.get(run_id));
}

function isQuestionEvent({ event: { type } }: StoredEvent): boolean {
  return type === "permission_request" || type === "permission_decision";
}

function isParked({ event }: StoredEvent): boolean {
  return event.type === "status" && event.status === "parked";
}

function showEvent(
  stored: StoredEvent,
  liveText: LiveText | null,
  { options }: CommandInput,
  writeAbove: (writeText: () => void) => void,
): void {
  const output = toOutput(stored);
  const warning = toWarning(stored);
  if (output) {
    if (options["json"]) return;
    liveText?.endLine();
    writeAbove(() => write(output.stream === "stdout" ? 1 : 2, output.bytes));
  } else if (liveText && stored.event.type === "assistant") liveText.showRecordedMessage(stored.event.text);
  else if (liveText && isRedundant(stored)) return;
  else if (liveText) {
    if (stored.event.type === "tool_use") liveText.startTool(stored.event.tool_use_id);
    liveText.showLine(warning ?? truncateToLine(describeEvent(stored) ?? ""));
    if (stored.event.type === "tool_result") liveText.endTool(stored.event.tool_use_id);
  } else if (warning && !options["quiet"]) write(2, `drover: ${warning}\n`);
}

/** Whether an event needs no line: a failure, which is printed in full at the end, or an environment event without names. */
function isRedundant({ event }: StoredEvent): boolean {
  if (event.type === "result") return event.status !== "completed";
  if (event.type !== "system" || event.subtype !== "environment") return false;
  return Object.values(event.data ?? {}).every((names) => Array.isArray(names) && names.length === 0);
}

function showsProgress({ options }: CommandInput): boolean {
  return isTerminal(2) && !options["quiet"] && !options["json"];
}

function updateSummary(stored: StoredEvent, summary: RunSummary): void {
  const { event } = stored;
  const output = toOutput(stored);
  if (output?.stream === "stdout")
    summary.stdout = (summary.stdout + output.bytes.toString("utf8")).slice(-maxCharacters);
  else if (output) summary.stderr = (summary.stderr + output.bytes.toString("utf8")).slice(0, maxCharacters);
  else if (event.type === "assistant") summary.lastMessage = event.text;
  else if (event.type === "file") summary.hasFiles = true;
  else if (event.type === "system" && event.executor_session_id) summary.canResume = true;
  else if (event.type === "status" && event.status === "stopping") summary.stopReason = event.reason ?? null;
  // Keep the first signal: later ones belong to on_finish commands.
  else if (event.type === "execution_ended" && !event.execution.reported_by) summary.signal ??= event.execution.signal;
}

/** Prints the agent's answer to stdout, unless its output already ended with the same text. */
function printResult({ result_text, result_data }: Run, summary: RunSummary, input: CommandInput): void {
  const text = result_text ?? (result_data === null || result_data === undefined ? "" : JSON.stringify(result_data));
  const end = text.trimEnd().slice(-maxCharacters);
  if (end === "" || summary.stdout.trimEnd().endsWith(end)) return;
  // On a terminal the progress on stderr has just shown the same text.
  if (isTerminal(1) && showsProgress(input) && summary.lastMessage.trim() === text.trim()) return;
  writeContent(text.endsWith("\n") ? text : `${text}\n`);
}

async function printNextSteps(
  client: ApiClient,
  run: Run,
  { type, resume }: SubmittedRun,
  summary: RunSummary,
): Promise<void> {
  if (run.status !== "completed")
    write(2, `drover: ${describeEnd(run, summary)}\n  ${findDroverCommand()} runs show ${toHintId(run.run_id)}\n`);
  if (summary.hasFiles) {
    const files = await describeFiles(client, run.run_id);
    if (files !== null) write(2, `${files}\n`);
  }
  if (summary.canResume && type !== "procedural" && isTerminal(2))
    write(
      2,
      `Continue: ${resume ?? `${findDroverCommand()} sessions resume ${toHintId(run.session_id ?? "SESSION")}`} --prompt "..."\n`,
    );
}

/** Describes the files of a run. A failed request is reported, but does not change the exit code. */
async function describeFiles(client: ApiClient, run_id: string): Promise<string | null> {
  try {
    const { length } = (await client.runs.files(run_id)).items;
    return length === 0
      ? null
      : `${length} ${length === 1 ? "file" : "files"}: ${findDroverCommand()} runs files ${toHintId(run_id)}`;
  } catch (error) {
    if (!(error instanceof HostError || error instanceof RequestError)) throw error;
    return `drover: could not list the files of the run: ${error.message}\n  ${findDroverCommand()} runs files ${toHintId(run_id)}`;
  }
}

/** The first Ctrl-C stops the run. A second one exits without waiting for it. */
function stopOnSignal(client: ApiClient, run_id: string): void {
  let isStopping = false;
  process.on("SIGINT", () => {
    if (isStopping) process.exit(130);
    isStopping = true;
    withRetries(() => client.runs.stop(run_id)).catch((error: unknown) =>
      write(2, `drover: ${error instanceof Error ? error.message : String(error)}\n`),
    );
  });
}
