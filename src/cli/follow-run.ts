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

/** What a command does with the run it has asked for: shows it until its end, and ends with its exit code. */
export async function followRun(client: ApiClient, submitted: Submitted, input: CommandInput): Promise<number> {
  const { run } = submitted;
  const { options } = input;
  if (options["detach"]) {
    write(1, options["json"] ? jsonLine(run) : `${run.run_id}\n`);
    if (!options["quiet"]) write(2, `Watch it: drover runs events ${run.run_id}\n`);
    return 0;
  }
  stopOnSignal(client, run.run_id);
  const seen: Seen = { stdout: "", said: "", hasFiles: false, canGoOn: false, stopped: null, signal: null };
  // Also where the run has ended already, because the same request was sent before: its log is replayed.
  const finished = await follow(client, run, seen, input);
  if (options["json"]) write(1, jsonLine(finished));
  else if (finished.status === "parked") {
    if (!options["quiet"]) write(2, await describeParked(client, finished));
  } else {
    if (submitted.type !== "procedural") printResult(finished, seen, input);
    if (!options["quiet"]) await printNextSteps(client, finished, submitted, seen);
  }
  return exitCodeOf(finished, submitted.type, seen.signal);
}

/** What was shown of a run on the way, so that nothing is said twice. */
interface Seen {
  /** The end of what it wrote there. */
  stdout: string;
  /** The last that the agent said, on the record. */
  said: string;
  hasFiles: boolean;
  canGoOn: boolean;
  /** Who stopped it, in words. */
  stopped: string | null;
  /** That ended its command. */
  signal: string | null;
}

const kept = 16 * 1024;

/** Its output as it comes, and warnings; everything else only for a person who watches. Until its end, or until it is parked. */
async function follow(client: ApiClient, run: Run, seen: Seen, input: CommandInput): Promise<Run> {
  const { run_id } = run;
  const live = isTalking(input) ? createLiveText((text) => aside(() => write(2, text))) : null;
  const asking = run.attended && canAsk(input) ? askAtTerminal(client, run, input.env) : null;
  const aside = (writeThere: () => void): void => (asking ? asking.aside(writeThere) : writeThere());
  const onPartial =
    live &&
    ((delta: Delta) => {
      if (delta.kind === "assistant") live.piece(delta.text);
    });
  const waiting = warnAboutSlots(client, run_id, input);
  try {
    for await (const stored of client.runs.follow(run_id, onPartial ? { onPartial } : {})) {
      note(stored, seen);
      waiting?.event(stored);
      if (asking && isQuestion(stored)) {
        live?.makeWay();
        asking.event(stored);
      } else show(stored, live, input, aside);
      if (isParked(stored)) {
        const now = await withRetries(() => client.runs.get(run_id));
        if (now.status === "parked") return now;
      }
    }
  } finally {
    waiting?.close();
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
  aside: (writeThere: () => void) => void,
): void {
  const output = outputOf(stored);
  const warning = warningOf(stored);
  if (output) {
    if (options["json"]) return;
    live?.makeWay();
    aside(() => write(output.stream === "stdout" ? 1 : 2, output.bytes));
  } else if (live && stored.event.type === "assistant") live.whole(stored.event.text);
  else if (live) live.line(warning ?? brief(eventLine(stored) ?? ""));
  else if (warning && !options["quiet"]) write(2, `drover: ${warning}\n`);
}

function isTalking({ options }: CommandInput): boolean {
  return isTerminal(2) && !options["quiet"] && !options["json"];
}

function note(stored: StoredEvent, seen: Seen): void {
  const { event } = stored;
  const output = outputOf(stored);
  if (output?.stream === "stdout") seen.stdout = (seen.stdout + output.bytes.toString("utf8")).slice(-kept);
  else if (event.type === "assistant") seen.said = event.text;
  else if (event.type === "file") seen.hasFiles = true;
  else if (event.type === "system" && event.executor_session_id) seen.canGoOn = true;
  else if (event.type === "status" && event.status === "stopping") seen.stopped = event.reason ?? null;
  // the first one: commands of on_finish come later
  else if (event.type === "execution_ended" && !event.execution.reported_by) seen.signal ??= event.execution.signal;
}

/** What an agent answers is the data of this command, unless the same stands there already. */
function printResult({ result_text, result_data }: Run, seen: Seen, input: CommandInput): void {
  const text = result_text ?? (result_data === null || result_data === undefined ? "" : JSON.stringify(result_data));
  const end = text.trimEnd().slice(-kept);
  if (end === "" || seen.stdout.trimEnd().endsWith(end)) return;
  // on a terminal both streams are one: the person has just read it
  if (isTerminal(1) && isTalking(input) && seen.said.trim() === text.trim()) return;
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
  if (seen.canGoOn && type !== "procedural" && isTerminal(2))
    write(2, `Go on: ${resume ?? `drover sessions resume ${run.session_id}`} --prompt "..."\n`);
}

/** A hint only: that it cannot be had is told, and is not how the run ended. */
async function filesHint(client: ApiClient, run_id: string): Promise<string | null> {
  try {
    const { length } = (await client.runs.files(run_id)).items;
    return length === 0 ? null : `${length} ${length === 1 ? "file" : "files"}: drover runs files ${run_id}`;
  } catch (error) {
    if (!(error instanceof HostError || error instanceof RequestError)) throw error;
    return `drover: whether it left files could not be asked: ${error.message}\n  drover runs files ${run_id}`;
  }
}

/** The first Ctrl-C stops the run; a second one leaves it to itself. */
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

/** A command's own code, or that of the signal that ended it; an agent that is no command fails with 1. */
function exitCodeOf({ status, reason, exit_code }: Run, type: Submitted["type"], signal: string | null): number {
  if (status === "cancelled") return 130;
  if (status === "parked") return parkedExitCode;
  if (reason === "timeout" || reason === "idle" || reason === "limit_exceeded") return 124;
  if (type === "autonomous") return status === "completed" ? 0 : 1;
  if (status === "completed") return exit_code ?? 0;
  if (reason === "command_not_found") return 127;
  return exit_code || (reason === "signalled" && signal !== null ? signalExitCode(signal) : 1);
}
