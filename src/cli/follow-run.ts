import { HostError, RequestError } from "../model/errors.ts";
import type { StoredEvent } from "../model/event.ts";
import type { Delta } from "../model/executor.ts";
import type { Run } from "../model/run.ts";
import type { ApiClient } from "../wire/client.ts";
import { askAtTerminal } from "./terminal-questions.ts";
import { canAsk } from "./can-ask.ts";
import { brief, eventLine, outputOf, warningOf } from "./event-line.ts";
import { signalExitCode } from "./exec-exit.ts";
import { isTerminal, write, writeContent } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import { createLiveText, type LiveText } from "./live-text.ts";
import type { CommandInput } from "./options.ts";
import { describeParked, parkedExitCode } from "./describe-parked.ts";
import { withRetries } from "./with-retries.ts";
import type { Submitted } from "./submit-run.ts";
import { warnAboutSlots } from "./slot-warning.ts";

/** Shows the run of a command until it ends or is parked, and returns the exit code for the command. */
export async function followRun(client: ApiClient, submitted: Submitted, input: CommandInput): Promise<number> {
  const { run } = submitted;
  const { options } = input;
  if (options["detach"]) {
    write(1, options["json"] ? jsonLine(run) : `${run.run_id}\n`);
    if (!options["quiet"]) write(2, `Watch it: drover runs events ${run.run_id}\n`);
    return 0;
  }
  stopOnSignal(client, run.run_id);
  const seen: Seen = { stdout: "", lastMessage: "", hasFiles: false, canResume: false, stopped: null, signal: null };
  // A run that has already ended, because its idempotency key was used before, is replayed from its log.
  const finished = await showEvents(client, run, seen, input);
  if (options["json"]) write(1, jsonLine(finished));
  else if (finished.status === "parked") {
    if (!options["quiet"]) write(2, await describeParked(client, finished));
  } else {
    if (submitted.type !== "procedural") printResult(finished, seen, input);
    if (!options["quiet"]) await printNextSteps(client, finished, submitted, seen);
  }
  return exitCodeOf(finished, submitted.type, seen.signal);
}

/** What the events of a run have shown so far, so that nothing is printed twice. */
interface Seen {
  /** The tail of its stdout. */
  stdout: string;
  /** The agent's last message. */
  lastMessage: string;
  hasFiles: boolean;
  /** The executor reported a session that can be resumed. */
  canResume: boolean;
  /** Why it was stopped, and by whom. */
  stopped: string | null;
  /** The signal that ended its command. */
  signal: string | null;
}

const tailCharacters = 16 * 1024;

/** Prints output and warnings as they arrive, and other events only on a terminal. Returns when the run ends or is parked. */
async function showEvents(client: ApiClient, run: Run, seen: Seen, input: CommandInput): Promise<Run> {
  const { run_id } = run;
  const live = showsProgress(input) ? createLiveText((text) => writeAbove(() => write(2, text))) : null;
  const asking = run.attended && canAsk(input) ? askAtTerminal(client, run, input.env) : null;
  const writeAbove = (writeText: () => void): void => (asking ? asking.writeAbove(writeText) : writeText());
  const onPartial =
    live &&
    ((delta: Delta) => {
      if (delta.kind === "assistant") live.piece(delta.text);
    });
  const slotWarning = warnAboutSlots(client, run_id, input);
  try {
    for await (const stored of client.runs.follow(run_id, onPartial ? { onPartial } : {})) {
      note(stored, seen);
      slotWarning?.event(stored);
      if (asking && isQuestion(stored)) {
        live?.endLine();
        asking.event(stored);
      } else show(stored, live, input, writeAbove);
      if (isParked(stored)) {
        const now = await withRetries(() => client.runs.get(run_id));
        if (now.status === "parked") return now;
      }
    }
  } finally {
    slotWarning?.close();
    live?.end();
    asking?.close();
  }
  return withRetries(() => client.runs.get(run_id));
}

function isQuestion({ event: { type } }: StoredEvent): boolean {
  return type === "permission_request" || type === "permission_decision";
}

function isParked({ event }: StoredEvent): boolean {
  return event.type === "status" && event.status === "parked";
}

function show(
  stored: StoredEvent,
  live: LiveText | null,
  { options }: CommandInput,
  writeAbove: (writeText: () => void) => void,
): void {
  const output = outputOf(stored);
  const warning = warningOf(stored);
  if (output) {
    if (options["json"]) return;
    live?.endLine();
    writeAbove(() => write(output.stream === "stdout" ? 1 : 2, output.bytes));
  } else if (live && stored.event.type === "assistant") live.whole(stored.event.text);
  else if (live) live.line(warning ?? brief(eventLine(stored) ?? ""));
  else if (warning && !options["quiet"]) write(2, `drover: ${warning}\n`);
}

function showsProgress({ options }: CommandInput): boolean {
  return isTerminal(2) && !options["quiet"] && !options["json"];
}

function note(stored: StoredEvent, seen: Seen): void {
  const { event } = stored;
  const output = outputOf(stored);
  if (output?.stream === "stdout") seen.stdout = (seen.stdout + output.bytes.toString("utf8")).slice(-tailCharacters);
  else if (event.type === "assistant") seen.lastMessage = event.text;
  else if (event.type === "file") seen.hasFiles = true;
  else if (event.type === "system" && event.executor_session_id) seen.canResume = true;
  else if (event.type === "status" && event.status === "stopping") seen.stopped = event.reason ?? null;
  // Keeps the first signal: later ones belong to on_finish commands.
  else if (event.type === "execution_ended" && !event.execution.reported_by) seen.signal ??= event.execution.signal;
}

/** Prints the agent's answer to stdout, unless its output already ended with the same text. */
function printResult({ result_text, result_data }: Run, seen: Seen, input: CommandInput): void {
  const text = result_text ?? (result_data === null || result_data === undefined ? "" : JSON.stringify(result_data));
  const end = text.trimEnd().slice(-tailCharacters);
  if (end === "" || seen.stdout.trimEnd().endsWith(end)) return;
  // On a terminal the progress on stderr has just shown the same text.
  if (isTerminal(1) && showsProgress(input) && seen.lastMessage.trim() === text.trim()) return;
  writeContent(text.endsWith("\n") ? text : `${text}\n`);
}

async function printNextSteps(client: ApiClient, run: Run, { type, resume }: Submitted, seen: Seen): Promise<void> {
  if (run.status !== "completed") {
    const why = run.error ?? seen.stopped;
    const status = `${run.status}${run.reason ? ` (${run.reason})` : ""}`;
    write(2, `drover: ${status}${why ? `: ${why}` : ""}\n  drover runs show ${run.run_id}\n`);
  }
  if (seen.hasFiles) {
    const files = await filesHint(client, run.run_id);
    if (files !== null) write(2, `${files}\n`);
  }
  if (seen.canResume && type !== "procedural" && isTerminal(2))
    write(2, `Continue: ${resume ?? `drover sessions resume ${run.session_id}`} --prompt "..."\n`);
}

/** The files are only a hint, so a failed request is reported but does not change the exit code. */
async function filesHint(client: ApiClient, run_id: string): Promise<string | null> {
  try {
    const { length } = (await client.runs.files(run_id)).items;
    return length === 0 ? null : `${length} ${length === 1 ? "file" : "files"}: drover runs files ${run_id}`;
  } catch (error) {
    if (!(error instanceof HostError || error instanceof RequestError)) throw error;
    return `drover: could not list the files of the run: ${error.message}\n  drover runs files ${run_id}`;
  }
}

/** The first Ctrl-C stops the run. A second one exits without waiting for it. */
function stopOnSignal(client: ApiClient, run_id: string): void {
  let asked = false;
  process.on("SIGINT", () => {
    if (asked) process.exit(130);
    asked = true;
    withRetries(() => client.runs.stop(run_id)).catch((error: unknown) =>
      write(2, `drover: ${error instanceof Error ? error.message : String(error)}\n`),
    );
  });
}

/** The exit code of the run's command, or 128 + n for signal n. An autonomous agent has no command and fails with 1. */
function exitCodeOf({ status, reason, exit_code }: Run, type: Submitted["type"], signal: string | null): number {
  if (status === "cancelled") return 130;
  if (status === "parked") return parkedExitCode;
  if (reason === "timeout" || reason === "idle" || reason === "limit_exceeded") return 124;
  if (type === "autonomous") return status === "completed" ? 0 : 1;
  if (status === "completed") return exit_code ?? 0;
  if (reason === "command_not_found") return 127;
  return exit_code || (reason === "signalled" && signal !== null ? signalExitCode(signal) : 1);
}
