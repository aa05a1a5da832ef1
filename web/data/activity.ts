import type { StoredEvent, Usage } from "../../src/model/event.ts";
import type { ExecutionEnd, ExecutionStart } from "../../src/model/execution.ts";

interface Span {
  key: string;
  /** Milliseconds since the epoch. */
  from: number;
  /** null while the activity is in progress. */
  to: number | null;
}

export type AttemptActivity = Span & { kind: "attempt"; number: number; result: ResultEvent | null };
/** One response of the model, from the moment it could start thinking to its last text or tool call. */
export type TurnActivity = Span & { kind: "turn"; number: number; text: string; usage: Usage | null };
export type UserActivity = Span & {
  kind: "user";
  text: string;
  by: string | null;
  /** Whether the agent has written text or called a tool since this message. */
  read: boolean;
};
export type ToolActivity = Span & { kind: "tool"; name: string; input: unknown; output: unknown; is_error: boolean };
export type ExecutionActivity = Span & {
  kind: "execution";
  /** Whether a model had taken a turn before this program started. */
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

/** Returns the text of the result, or null if it only repeats the data: the output of a program that prints JSON is both. */
export function getResultText({
  result_text,
  result_data,
}: Pick<ResultEvent, "result_text" | "result_data">): string | null {
  const isData =
    result_data !== null &&
    result_data !== undefined &&
    removeSpace(JSON.stringify(result_data)) === removeSpace(result_text ?? "");
  return isData ? null : result_text || null;
}

const removeSpace = (text: string): string => text.replaceAll(/\s/g, "");

/** One step of a run, such as a message or a tool call. Activities are ordered by start time. */
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
 * ones. Relies only on an event's type, because its content is untrusted.
 */
export function createActivityReader(): (events: readonly StoredEvent[]) => readonly Activity[] {
  const activities: Activity[] = [];
  /**
   * Indexes of activities that have not reported their end, keyed by kind and by the id that the end event repeats. The
   * kind is necessary, because a question may have the id of the tool that it asks about.
   */
  const unfinished = new Map<string, number>();
  const unreadIndexes: number[] = [];
  let readCount = 0;
  let attemptIndex: number | null = null;
  let turnIndex: number | null = null;
  let turnCount = 0;
  /** Usage reported before its turn started. The next turn takes it. */
  let usage: Usage | null = null;
  /** When the model may have started thinking. */
  let idleSince: number | null = null;

  return (events) => {
    for (; readCount < events.length; readCount += 1) addEvent(events[readCount]!);
    return [...activities];
  };

  function addEvent({ seq, at: time, attempt: number, n, event }: StoredEvent): void {
    const at = Date.parse(time);
    const key = `e${seq}`;
    const instant = { key, from: at, to: at };
    const openSpan = { key, from: at, to: null };
    idleSince ??= at;
    // Events from the coordinator itself have no number and do not start an attempt.
    if (n !== null && (attemptIndex === null || getAttempt(attemptIndex).number !== number)) {
      endAttempt(at);
      attemptIndex =
        activities.push({ ...openSpan, key: `attempt-${number}`, kind: "attempt", number, result: null }) - 1;
      turnIndex = null;
      idleSince = at;
    }
    switch (event.type) {
      case "assistant":
        recordOutput(at, event.text);
        activities.push({ ...instant, kind: "assistant", text: event.text });
        break;
      case "tool_use":
        recordOutput(at, null);
        startActivity("tool", event.tool_use_id, {
          ...openSpan,
          kind: "tool",
          name: event.name,
          input: event.input,
          output: undefined,
          is_error: false,
        });
        break;
      case "tool_result":
        turnIndex = null;
        idleSince = at;
        finishActivity("tool", event.tool_use_id, { to: at, output: event.output, is_error: event.is_error });
        break;
      case "execution_started": {
        const from = Date.parse(event.execution.started_at);
        const start = event.execution;
        startActivity("execution", start.execution_id, {
          ...openSpan,
          kind: "execution",
          from,
          inTurn: turnCount > 0,
          start,
          end: null,
        });
        break;
      }
      case "execution_ended":
        finishActivity("execution", event.execution.execution_id, {
          to: Date.parse(event.execution.ended_at),
          end: event.execution,
        });
        break;
      case "permission_request": {
        const { request_id, tool, input } = event;
        startActivity("question", request_id, {
          ...openSpan,
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
        finishActivity("question", request_id, { to: at, decision, by, message });
        break;
      }
      case "system":
        if (event.subtype === "user_input") {
          unreadIndexes.push(activities.length);
          activities.push({ ...instant, kind: "user", ...readInput(event.data), read: false });
        } else if (event.subtype === "compacted")
          activities.push({ ...instant, kind: "note", text: "The conversation was summarized to fit the model." });
        break;
      case "error":
        activities.push({ ...instant, kind: "error", text: event.message });
        break;
      case "usage":
        // Some executors report usage before the model's text, others after it.
        if (turnIndex !== null && getTurn(turnIndex).usage === null) update(turnIndex, "turn", { usage: event.usage });
        else
          [turnIndex, usage, idleSince] = [null, event.usage, turnIndex === null ? idleSince : getTurn(turnIndex).to];
        activities.push({ ...instant, kind: "usage", usage: event.usage });
        break;
      case "result":
        endAttempt(at);
        if (attemptIndex !== null) update(attemptIndex, "attempt", { to: at, result: event });
        activities.push({ ...instant, kind: "result", event });
        break;
      default:
        break;
    }
  }

  /** Records that the model wrote text or called a tool. Starts a turn if none is in progress. */
  function recordOutput(at: number, text: string | null): void {
    for (const index of unreadIndexes.splice(0)) update(index, "user", { read: true });
    if (turnIndex === null) {
      turnCount += 1;
      const from = idleSince ?? at;
      turnIndex =
        activities.push({ kind: "turn", key: `turn-${turnCount}`, number: turnCount, from, to: at, text: "", usage }) -
        1;
      usage = null;
    }
    update(turnIndex, "turn", { to: at, ...(text === null ? {} : { text }) });
  }

  function startActivity<K extends Activity["kind"]>(
    kind: K,
    id: string,
    activity: Extract<Activity, { kind: K }>,
  ): void {
    unfinished.set(`${kind} ${id}`, activities.push(activity) - 1);
  }

  /** Also updates an activity that ended with its attempt: the tool of a parked run returns in a later attempt. */
  function finishActivity<K extends Activity["kind"]>(
    kind: K,
    id: string,
    changes: Partial<Extract<Activity, { kind: K }>>,
  ): void {
    const key = `${kind} ${id}`;
    const index = unfinished.get(key);
    if (index === undefined) return;
    unfinished.delete(key);
    update(index, kind, changes);
  }

  /** Ends the current attempt and all activities in progress. */
  function endAttempt(at: number): void {
    for (const [index, activity] of activities.entries())
      if (activity.to === null) activities[index] = { ...activity, to: at };
  }

  function update<K extends Activity["kind"]>(
    index: number,
    kind: K,
    changes: Partial<Extract<Activity, { kind: K }>>,
  ): void {
    const activity = activities[index];
    if (activity?.kind === kind) activities[index] = { ...activity, ...changes };
  }

  function getTurn(index: number): TurnActivity {
    // `turnIndex` only ever holds the index of a turn.
    return activities[index] as TurnActivity;
  }

  function getAttempt(index: number): AttemptActivity {
    // `attemptIndex` only ever holds the index of an attempt.
    return activities[index] as AttemptActivity;
  }
}

function readInput(data: unknown): { text: string; by: string | null } {
  const field = (key: string): unknown =>
    typeof data === "object" && data !== null ? Reflect.get(data, key) : undefined;
  const [text, by] = [field("text"), field("by")];
  return {
    text: typeof text === "string" ? text : typeof data === "string" ? data : JSON.stringify(data ?? ""),
    by: typeof by === "string" ? by : null,
  };
}

/** Summarizes a tool's input in one line. */
export function summarizeInput(input: unknown): string {
  if (typeof input !== "object" || input === null) return String(input ?? "");
  for (const key of ["command", "file_path", "path", "pattern", "query", "url"]) {
    const value = Reflect.get(input, key) as unknown;
    if (typeof value === "string") return value;
  }
  return JSON.stringify(input);
}
