import { HostError, RequestError } from "../model/errors.ts";
import type { StoredEvent } from "../model/event.ts";
import type { Delta } from "../model/executor.ts";
import type { Run } from "../model/run.ts";
import { isTerminal as isFinal } from "../model/states.ts";
import type { Client } from "../wire/client.ts";
import { brief, eventLine, outputOf, warningOf } from "./event-line.ts";
import { harmless } from "./harmless.ts";
import { isTerminal, write } from "./io.ts";
import { createLiveText, type LiveText } from "./live-text.ts";
import type { CommandInput, ParsedOptions } from "./options.ts";
import { patiently } from "./patiently.ts";
import type { Submitted } from "./submit-run.ts";

/** What a command does with the run it has asked for: shows it until its end, and ends with its exit code. */
export async function attendRun(client: Client, submitted: Submitted, { options }: CommandInput): Promise<number> {
  const { run } = submitted;
  if (options["detach"]) {
    write(1, options["json"] ? `${JSON.stringify(run)}\n` : `${run.run_id}\n`);
    if (!options["quiet"]) write(2, `Watch it: drover runs events ${run.run_id}\n`);
    return 0;
  }
  stopOnSignal(client, run.run_id);
  const seen: Seen = { stdout: "", said: "", hasFiles: isFinal(run.status), canGoOn: false, stopped: null };
  const finished = isFinal(run.status) ? run : await follow(client, run.run_id, seen, options);
  if (options["json"]) write(1, `${JSON.stringify(finished)}\n`);
  else {
    if (submitted.type !== "procedural") tellResult(finished, seen, options);
    if (!options["quiet"]) await tellNext(client, finished, submitted, seen);
  }
  return exitCodeOf(finished);
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
}

const kept = 16 * 1024;

/** Its output as it comes, and warnings; everything else only for a person who watches. */
async function follow(client: Client, run_id: string, seen: Seen, options: ParsedOptions): Promise<Run> {
  const live = isTalking(options) ? createLiveText((text) => write(2, text)) : null;
  const onPartial =
    live &&
    ((delta: Delta) => {
      if (delta.kind === "assistant") live.piece(delta.text);
    });
  for await (const stored of client.runs.follow(run_id, onPartial ? { onPartial } : {})) {
    note(stored, seen);
    show(stored, live, options);
  }
  live?.end();
  return patiently(() => client.runs.get(run_id));
}

function show(stored: StoredEvent, live: LiveText | null, options: ParsedOptions): void {
  const output = outputOf(stored);
  const warning = warningOf(stored);
  if (output) {
    if (options["json"]) return;
    live?.makeWay();
    write(output.stream === "stdout" ? 1 : 2, output.text);
  } else if (live && stored.event.type === "assistant") live.whole(stored.event.text);
  else if (live) live.line(warning ?? brief(eventLine(stored) ?? ""));
  else if (warning && !options["quiet"]) write(2, `drover: ${harmless(warning)}\n`);
}

function isTalking(options: ParsedOptions): boolean {
  return isTerminal(2) && !options["quiet"] && !options["json"];
}

function note(stored: StoredEvent, seen: Seen): void {
  const { event } = stored;
  const output = outputOf(stored);
  if (output?.stream === "stdout") seen.stdout = (seen.stdout + output.text).slice(-kept);
  else if (event.type === "assistant") seen.said = event.text;
  else if (event.type === "file") seen.hasFiles = true;
  else if (event.type === "system" && event.executor_session_id) seen.canGoOn = true;
  else if (event.type === "status" && event.status === "stopping") seen.stopped = event.reason ?? null;
}

/** What an agent answers is the data of this command, unless the same stands there already. */
function tellResult({ result_text, result_data }: Run, seen: Seen, options: ParsedOptions): void {
  const text = result_text ?? (result_data === null || result_data === undefined ? "" : JSON.stringify(result_data));
  const end = text.trimEnd().slice(-kept);
  if (end === "" || seen.stdout.trimEnd().endsWith(end)) return;
  // on a terminal both streams are one: the person has just read it
  if (isTerminal(1) && isTalking(options) && seen.said.trim() === text.trim()) return;
  write(1, text.endsWith("\n") ? text : `${text}\n`);
}

async function tellNext(client: Client, run: Run, { type }: Submitted, seen: Seen): Promise<void> {
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
    write(2, `Go on: drover sessions resume ${run.session_id} --prompt "..."\n`);
}

/** A hint only: that it cannot be had is told, and is not how the run ended. */
async function filesHint(client: Client, run_id: string): Promise<string | null> {
  try {
    const { length } = (await client.runs.files(run_id)).items;
    return length === 0 ? null : `${length} ${length === 1 ? "file" : "files"}: drover runs files ${run_id}`;
  } catch (error) {
    if (!(error instanceof HostError || error instanceof RequestError)) throw error;
    return `drover: whether it left files could not be asked: ${error.message}\n  drover runs files ${run_id}`;
  }
}

/** The first Ctrl-C stops the run; a second one leaves it to itself. */
function stopOnSignal(client: Client, run_id: string): void {
  let asked = false;
  process.on("SIGINT", () => {
    if (asked) process.exit(130);
    asked = true;
    patiently(() => client.runs.stop(run_id)).catch((error: unknown) =>
      write(2, `drover: ${error instanceof Error ? error.message : String(error)}\n`),
    );
  });
}

function exitCodeOf({ status, reason, exit_code }: Run): number {
  if (status === "completed") return exit_code ?? 0;
  if (status === "cancelled") return 130;
  if (reason === "timeout" || reason === "idle" || reason === "limit_exceeded") return 124;
  if (reason === "command_not_found") return 127;
  return exit_code || 1;
}
