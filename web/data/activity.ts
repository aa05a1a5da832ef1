import type { StoredEvent, Usage } from "../../src/model/event.ts";
import type { ExecutionEnd, ExecutionStart } from "../../src/model/execution.ts";

interface Span {
  key: string;
  /** Milliseconds since the epoch. */
  from: number;
  /** null while it is still in progress. */
  to: number | null;
}

export type AttemptActivity = Span & { kind: "attempt"; number: number; result: ResultEvent | null };
/** One answer from the model, from when it could start thinking to its last text or tool call. */
export type TurnActivity = Span & { kind: "turn"; number: number; text: string; usage: Usage | null };
export type UserActivity = Span & {
  kind: "user";
  text: string;
  by: string | null;
  /** Whether the agent has said or done anything since this message. */
  heard: boolean;
};
export type ToolActivity = Span & { kind: "tool"; name: string; input: unknown; output: unknown; is_error: boolean };
export type ExecutionActivity = Span & {
  kind: "execution";
  /** Whether a model's turn caused it. */
  inTurn: boolean;
  start: ExecutionStart;
  end: ExecutionEnd | null;
};
export type QuestionActivity = Span & {
  kind: "question";
  request_id: string;
  tool: string;
  input: unknown;
  decision: string | null;
  by: string | null;
  message: string | null;
};
export type ResultEvent = Extract<StoredEvent["event"], { type: "result" }>;

/** One thing a run said or did. Activities are ordered by when they started. */
export type Activity =
  | AttemptActivity
  | TurnActivity
  | UserActivity
  | ToolActivity
  | ExecutionActivity
  | QuestionActivity
  | (Span & { kind: "assistant"; text: string })
  | (Span & { kind: "note" | "error"; text: string })
  | (Span & { kind: "usage"; usage: Usage })
  | (Span & { kind: "result"; event: ResultEvent });

/**
 * Turns events into activities as they arrive. Unchanged activities keep their identity, so that React renders only new
 * ones. Event contents are untrusted; only the type is relied on.
 */
export function createActivityReader(): (events: readonly StoredEvent[]) => readonly Activity[] {
  const all: Activity[] = [];
  /** Indexes of activities still in progress, keyed by the id in their end event. */
  const open = new Map<string, number>();
  const unheard: number[] = [];
  let read = 0;
  let attempt: number | null = null;
  let turn: number | null = null;
  let turns = 0;
  /** Reported before its turn: belongs to the next one. */
  let usage: Usage | null = null;
  /** When the model may have started thinking. */
  let idleSince: number | null = null;

  return (events) => {
    for (; read < events.length; read += 1) take(events[read]!);
    return [...all];
  };

  function take({ seq, at: time, attempt: number, n, event }: StoredEvent): void {
    const at = Date.parse(time);
    const key = `e${seq}`;
    const moment = { key, from: at, to: at };
    const started = { key, from: at, to: null };
    idleSince ??= at;
    // Events from the coordinator itself have no number and do not start an attempt.
    if (n !== null && (attempt === null || attemptAt(attempt).number !== number)) {
      closeAll(at);
      attempt = all.push({ ...started, key: `attempt-${number}`, kind: "attempt", number, result: null }) - 1;
      turn = null;
      idleSince = at;
    }
    switch (event.type) {
      case "assistant":
        speak(at, event.text);
        all.push({ ...moment, kind: "assistant", text: event.text });
        break;
      case "tool_use":
        speak(at, null);
        begin(event.tool_use_id, {
          ...started,
          kind: "tool",
          name: event.name,
          input: event.input,
          output: undefined,
          is_error: false,
        });
        break;
      case "tool_result":
        turn = null;
        idleSince = at;
        end(event.tool_use_id, "tool", { to: at, output: event.output, is_error: event.is_error });
        break;
      case "execution_started": {
        const from = Date.parse(event.execution.started_at);
        const start = event.execution;
        begin(start.execution_id, { ...started, kind: "execution", from, inTurn: turns > 0, start, end: null });
        break;
      }
      case "execution_ended":
        end(event.execution.execution_id, "execution", {
          to: Date.parse(event.execution.ended_at),
          end: event.execution,
        });
        break;
      case "permission_request": {
        const { request_id, tool, input } = event;
        begin(request_id, {
          ...started,
          kind: "question",
          request_id,
          tool,
          input,
          decision: null,
          by: null,
          message: null,
        });
        break;
      }
      case "permission_decision": {
        const { request_id, decision, by, message = null } = event;
        end(request_id, "question", { to: at, decision, by, message });
        break;
      }
      case "system":
        if (event.subtype === "user_input") {
          unheard.push(all.length);
          all.push({ ...moment, kind: "user", ...readInput(event.data), heard: false });
        } else if (event.subtype === "compacted")
          all.push({ ...moment, kind: "note", text: "The conversation was summarized to fit the model." });
        break;
      case "error":
        all.push({ ...moment, kind: "error", text: event.message });
        break;
      case "usage":
        // Some executors report usage before the model's text, others after it.
        if (turn !== null && turnAt(turn).usage === null) change(turn, "turn", { usage: event.usage });
        else [turn, usage, idleSince] = [null, event.usage, turn === null ? idleSince : turnAt(turn).to];
        all.push({ ...moment, kind: "usage", usage: event.usage });
        break;
      case "result":
        closeAll(at);
        if (attempt !== null) change(attempt, "attempt", { to: at, result: event });
        all.push({ ...moment, kind: "result", event });
        break;
      default:
        break;
    }
  }

  /** Records that the model spoke or called a tool, and starts a turn if none is open. */
  function speak(at: number, text: string | null): void {
    for (const index of unheard.splice(0)) change(index, "user", { heard: true });
    if (turn === null) {
      turns += 1;
      const from = idleSince ?? at;
      turn = all.push({ kind: "turn", key: `turn-${turns}`, number: turns, from, to: at, text: "", usage }) - 1;
      usage = null;
    }
    change(turn, "turn", { to: at, ...(text === null ? {} : { text }) });
  }

  function begin(id: string, activity: Activity): void {
    open.set(id, all.push(activity) - 1);
  }

  function end<K extends Activity["kind"]>(id: string, kind: K, part: Partial<Extract<Activity, { kind: K }>>): void {
    const index = open.get(id);
    if (index === undefined) return;
    open.delete(id);
    change(index, kind, part);
  }

  /** Ends the attempt and everything still in progress in it. */
  function closeAll(at: number): void {
    for (const index of open.values()) all[index] = { ...all[index]!, to: at };
    open.clear();
    if (attempt !== null && all[attempt]!.to === null) all[attempt] = { ...all[attempt]!, to: at };
  }

  function change<K extends Activity["kind"]>(
    index: number,
    kind: K,
    part: Partial<Extract<Activity, { kind: K }>>,
  ): void {
    const before = all[index];
    if (before?.kind === kind) all[index] = { ...before, ...part };
  }

  function turnAt(index: number): TurnActivity {
    // `turn` only ever holds the index of a turn.
    return all[index] as TurnActivity;
  }

  function attemptAt(index: number): AttemptActivity {
    // `attempt` only ever holds the index of an attempt.
    return all[index] as AttemptActivity;
  }
}

function readInput(data: unknown): { text: string; by: string | null } {
  const at = (key: string): unknown => (typeof data === "object" && data !== null ? Reflect.get(data, key) : undefined);
  const [text, by] = [at("text"), at("by")];
  return {
    text: typeof text === "string" ? text : typeof data === "string" ? data : JSON.stringify(data ?? ""),
    by: typeof by === "string" ? by : null,
  };
}

/** Summarizes a tool's input in one line. */
export function inputLine(input: unknown): string {
  if (typeof input !== "object" || input === null) return String(input ?? "");
  for (const key of ["command", "file_path", "path", "pattern", "query", "url"]) {
    const value = Reflect.get(input, key) as unknown;
    if (typeof value === "string") return value;
  }
  return JSON.stringify(input);
}
