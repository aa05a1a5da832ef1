import type { RunEvent, StoredEvent } from "../../model/event.ts";
import type { Delta } from "../../model/executor.ts";
import type { Run } from "../../model/run.ts";
import { describeEvent, toOutput, toWarning } from "../event-line.ts";
import { createLiveText } from "../live-text.ts";
import { summarizeInput, escapeInvisible } from "../question-view.ts";
import { formatDuration } from "../table.ts";
import type { Style } from "../terminal/style.ts";
import { truncateToWidth } from "../terminal/text-width.ts";

/** Shows one turn: the agent's message while it is written, and one line for each tool call. */
export interface TurnView {
  event(stored: StoredEvent): void;
  partial(delta: Delta): void;
  /** Ends an unfinished line, so that other output can follow. */
  endLine(): void;
  /** The active tool calls. */
  readonly activeTools: string[];
  end(run: Run): void;
}

/** The system events that a user should see. All others are only in the log. */
const shownSubtypes: ReadonlySet<string> = new Set([
  "compacted",
  "files_left_out",
  "permission_denied",
  "provider_retry",
  "waiting_for_directory",
]);

/** Longer than it takes for a tool call to be recorded, but not long enough to be noticed. */
const holdMs = 250;

interface Call {
  name: string;
  input: unknown;
  at: number;
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
  let stopped: string | null = null;
  let fileCount = 0;
  const usage = { input_tokens: 0, output_tokens: 0, cost_usd: null as number | null };
  const liveText = createLiveText(print);
  /** Pieces of the next message. They are held back briefly, because earlier tool calls are recorded after the pieces arrive. */
  let heldText = "";
  let holdTimer: NodeJS.Timeout | null = null;
  function release(): void {
    if (holdTimer) clearTimeout(holdTimer);
    holdTimer = null;
    if (heldText !== "") liveText.piece(heldText);
    heldText = "";
  }

  function showFinished(
    { tool_use_id, is_error, output }: Extract<RunEvent, { type: "tool_result" }>,
    at: string,
  ): void {
    const call = calls.get(tool_use_id);
    calls.delete(tool_use_id);
    const elapsed = call ? formatDuration(Math.max(0, Date.parse(at) - call.at)) : "";
    const label = call ? `${escapeInvisible(call.name)} ${summarizeInput(call.input)}` : "a tool";
    const reason = is_error ? `: ${findErrorMessage(output)}` : "";
    const isCut = typeof output === "object" && output !== null && "stopped" in output;
    const end = isCut ? ` stopped after ${elapsed}` : ` ${elapsed}`;
    const maxWidth = columns() - 6 - end.length;
    const mark = is_error || isCut ? style.red("✗") : style.green("✓");
    liveText.line(`${mark} ${truncateToWidth(label.trim(), maxWidth)}${style.dim(end)}`);
    if (reason) liveText.line(`  ${style.red(truncateToWidth(reason.slice(2), columns() - 6))}`);
  }

  return {
    get activeTools() {
      return [...calls.values()].map(({ name, input }) => `${escapeInvisible(name)} ${summarizeInput(input)}`.trim());
    },
    endLine: () => liveText.endLine(),
    partial({ kind, text }) {
      if (kind !== "assistant") return;
      if (holdTimer || calls.size > 0) heldText += text;
      else liveText.piece(text);
    },
    event(stored) {
      const { event, at } = stored;
      const warning = toWarning(stored);
      const output = toOutput(stored);
      if (warning) liveText.line(style.yellow(escapeInvisible(warning)));
      else if (output) for (const line of toVisibleLines(output.bytes.toString("utf8"))) liveText.line(style.dim(line));
      else if (event.type === "assistant") {
        lastMessage = event.text;
        release();
        liveText.whole(event.text);
        holdTimer = setTimeout(release, holdMs);
      } else if (event.type === "tool_use") {
        calls.set(event.tool_use_id, { name: event.name, input: event.input, at: Date.parse(at) });
      } else if (event.type === "tool_result") {
        showFinished(event, at);
        if (calls.size === 0) release();
      } else if (event.type === "permission_decision") {
        const call = calls.get(event.request_id);
        // The tool starts now, perhaps with an input that a person edited.
        if (call) calls.set(event.request_id, { ...call, input: event.input ?? call.input, at: Date.parse(at) });
      } else if (event.type === "usage") {
        usage.input_tokens += event.usage.input_tokens;
        usage.output_tokens += event.usage.output_tokens;
        if (event.usage.cost_usd !== null) usage.cost_usd = (usage.cost_usd ?? 0) + event.usage.cost_usd;
      } else if (event.type === "file") fileCount++;
      else if (event.type === "status" && event.status === "stopping") stopped = event.reason ?? null;
      else if (event.type === "error") liveText.line(style.red(escapeInvisible(event.message)));
      else if (event.type === "system" && shownSubtypes.has(event.subtype))
        liveText.line(
          style.dim(truncateToWidth(escapeInvisible(describeEvent(stored) ?? "").replaceAll("\n", " "), columns() - 4)),
        );
    },
    end(run) {
      release();
      for (const { name, input } of calls.values())
        liveText.line(
          `${style.red("✗")} ${truncateToWidth(`${escapeInvisible(name)} ${summarizeInput(input)}`, columns() - 16)}${style.dim(" did not finish")}`,
        );
      calls.clear();
      liveText.end();
      const text = run.result_text ?? "";
      if (run.status === "completed" && text.trim() !== "" && lastMessage.trim() === "") {
        liveText.whole(text);
        liveText.end();
      }
      if (run.status === "cancelled")
        print(
          `  ${style.red("stopped")}${stopped ? style.dim(` ${escapeInvisible(stopped.replace(/^Stopped /, ""))}`) : ""}\n`,
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
    fileCount > 0 ? `${fileCount} ${fileCount === 1 ? "file" : "files"}: /files` : "",
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

/** The error message in a tool's output, wherever the tool puts it. */
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
