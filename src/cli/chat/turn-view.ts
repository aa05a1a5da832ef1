import type { RunEvent, StoredEvent } from "../../model/event.ts";
import type { Delta } from "../../model/executor.ts";
import type { Run } from "../../model/run.ts";
import { describeEvent, toOutput, toWarning } from "../event-line.ts";
import { createLiveText } from "../live-text.ts";
import { summarizeInput, escapeInvisible } from "../question-view.ts";
import { formatDuration } from "../table.ts";
import type { Style } from "../terminal/style.ts";
import { truncateToWidth } from "../terminal/text-width.ts";

/** Shows one turn: the agent's message as it streams in, and one line for each tool call. */
export interface TurnView {
  showEvent(stored: StoredEvent): void;
  showPiece(delta: Delta): void;
  /** Ends an unfinished line, so that other output can follow. */
  endLine(): void;
  /** The active tool calls, as one line each. */
  readonly activeTools: string[];
  end(run: Run): void;
}

/** Subtypes of the system events that the view shows. All others are only in the log. */
const shownSubtypes: ReadonlySet<string> = new Set([
  "compacted",
  "files_left_out",
  "permission_denied",
  "provider_retry",
  "waiting_for_directory",
]);

/** How long to hold text back. Recording a tool call takes less, and users do not notice such a delay. */
const holdMs = 250;

interface Call {
  name: string;
  input: unknown;
  startedAt: number;
}

export interface TurnOutput {
  /** The text may start and end in the middle of a line. */
  print(text: string): void;
  columns(): number;
  style: Style;
}

export function createTurnView({ print, columns, style }: TurnOutput): TurnView {
  const calls = new Map<string, Call>();
  let lastMessage = "";
  let stopReason: string | null = null;
  let fileCount = 0;
  const usage = { input_tokens: 0, output_tokens: 0, cost_usd: null as number | null };
  const liveText = createLiveText(print);
  /** Pieces of the next message. A tool call before them may be recorded only after they arrive, so they wait briefly for its line. */
  let heldText = "";
  let holdTimer: NodeJS.Timeout | null = null;
  function releaseHeldText(): void {
    if (holdTimer) clearTimeout(holdTimer);
    holdTimer = null;
    if (heldText !== "") liveText.showPiece(heldText);
    heldText = "";
  }

  function showToolResult(
    { tool_use_id, is_error, output }: Extract<RunEvent, { type: "tool_result" }>,
    at: string,
  ): void {
    const call = calls.get(tool_use_id);
    calls.delete(tool_use_id);
    const elapsed = call ? formatDuration(Math.max(0, Date.parse(at) - call.startedAt)) : "";
    const label = call ? `${escapeInvisible(call.name)} ${summarizeInput(call.input)}` : "a tool";
    const message = is_error ? findErrorMessage(output) : "";
    const wasStopped = typeof output === "object" && output !== null && "stopped" in output;
    const ending = wasStopped ? ` stopped after ${elapsed}` : ` ${elapsed}`;
    const maxWidth = columns() - 6 - ending.length;
    const icon = is_error || wasStopped ? style.red("✗") : style.green("✓");
    liveText.showLine(`${icon} ${truncateToWidth(label.trim(), maxWidth)}${style.dim(ending)}`);
    if (message) liveText.showLine(`  ${style.red(truncateToWidth(message, columns() - 6))}`);
  }

  return {
    get activeTools() {
      return [...calls.values()].map(({ name, input }) => `${escapeInvisible(name)} ${summarizeInput(input)}`.trim());
    },
    endLine: () => liveText.endLine(),
    showPiece({ kind, text }) {
      if (kind !== "assistant") return;
      if (holdTimer || calls.size > 0) heldText += text;
      else liveText.showPiece(text);
    },
    showEvent(stored) {
      const { event, at } = stored;
      const warning = toWarning(stored);
      const output = toOutput(stored);
      if (warning) liveText.showLine(style.yellow(escapeInvisible(warning)));
      else if (output)
        for (const line of toVisibleLines(output.bytes.toString("utf8"))) liveText.showLine(style.dim(line));
      else if (event.type === "assistant") {
        lastMessage = event.text;
        releaseHeldText();
        liveText.showRecordedMessage(event.text);
        holdTimer = setTimeout(releaseHeldText, holdMs);
      } else if (event.type === "tool_use") {
        calls.set(event.tool_use_id, { name: event.name, input: event.input, startedAt: Date.parse(at) });
      } else if (event.type === "tool_result") {
        showToolResult(event, at);
        if (calls.size === 0) releaseHeldText();
      } else if (event.type === "permission_decision") {
        const call = calls.get(event.request_id);
        // The tool starts now, perhaps with an input that a person edited.
        if (call) calls.set(event.request_id, { ...call, input: event.input ?? call.input, startedAt: Date.parse(at) });
      } else if (event.type === "usage") {
        usage.input_tokens += event.usage.input_tokens;
        usage.output_tokens += event.usage.output_tokens;
        if (event.usage.cost_usd !== null) usage.cost_usd = (usage.cost_usd ?? 0) + event.usage.cost_usd;
      } else if (event.type === "file") fileCount++;
      else if (event.type === "status" && event.status === "stopping") stopReason = event.reason ?? null;
      else if (event.type === "error") liveText.showLine(style.red(escapeInvisible(event.message)));
      else if (event.type === "system" && shownSubtypes.has(event.subtype))
        liveText.showLine(
          style.dim(truncateToWidth(escapeInvisible(describeEvent(stored) ?? "").replaceAll("\n", " "), columns() - 4)),
        );
    },
    end(run) {
      releaseHeldText();
      for (const { name, input } of calls.values())
        liveText.showLine(
          `${style.red("✗")} ${truncateToWidth(`${escapeInvisible(name)} ${summarizeInput(input)}`, columns() - 16)}${style.dim(" did not finish")}`,
        );
      calls.clear();
      liveText.end();
      const text = run.result_text ?? "";
      if (run.status === "completed" && text.trim() !== "" && lastMessage.trim() === "") {
        liveText.showRecordedMessage(text);
        liveText.end();
      }
      if (run.status === "cancelled")
        print(
          `  ${style.red("stopped")}${stopReason ? style.dim(` ${escapeInvisible(stopReason.replace(/^Stopped /, ""))}`) : ""}\n`,
        );
      else if (run.status !== "completed")
        print(
          `  ${style.red(`${run.status}${run.reason ? ` (${run.reason})` : ""}`)}${run.error ? `: ${escapeInvisible(run.error)}` : ""}\n`,
        );
      print(`${style.dim(`  ${describeTurn(run, usage, fileCount)}`)}\n`);
    },
  };
}

function describeTurn(
  { started_at, finished_at, created_at }: Run,
  { input_tokens, output_tokens, cost_usd }: { input_tokens: number; output_tokens: number; cost_usd: number | null },
  fileCount: number,
): string {
  const elapsed = finished_at ? formatDuration(Date.parse(finished_at) - Date.parse(started_at ?? created_at)) : "";
  return [
    elapsed,
    input_tokens + output_tokens > 0 ? `${input_tokens} tokens in, ${output_tokens} out` : "",
    cost_usd ? `$${cost_usd.toFixed(cost_usd < 1 ? 4 : 2)}` : "",
    fileCount > 0 ? `${fileCount} ${fileCount === 1 ? "file" : "files"} (type /files to list them)` : "",
  ]
    .filter((part) => part !== "")
    .join(" · ");
}

function toVisibleLines(text: string): string[] {
  return text
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => escapeInvisible(line));
}

/** Finds the error message in a tool's output. Tools put it into different fields. */
function findErrorMessage(output: unknown): string {
  const message = findMessage(output) ?? JSON.stringify(output) ?? "";
  return escapeInvisible(message)
    .trim()
    .replaceAll(/\s*\n\s*/g, " ");
}

function findMessage(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(findMessage).find((text) => text !== null) ?? null;
  if (typeof value !== "object" || value === null) return null;
  for (const key of ["error", "message", "text", "content"]) {
    const inner: unknown = Reflect.get(value, key);
    const text = inner === undefined ? null : findMessage(inner);
    if (text !== null) return text;
  }
  return null;
}
