import type { ExecutionEnd, ExecutionStart } from "../../src/model/execution.ts";
import type { StoredEvent } from "../../src/model/event.ts";
import type { Run } from "./queries.ts";

type Tone = "idle" | "run" | "ok" | "bad" | "wait";

/** One bar of the waterfall. */
export interface Step {
  id: string;
  depth: 0 | 1 | 2;
  label: string;
  note: string | null;
  tone: Tone;
  from: number;
  /** null: still under way. */
  to: number | null;
  detail: StepDetail;
}

export type StepDetail =
  | { kind: "queue" }
  | { kind: "attempt"; attempt: number }
  | { kind: "turn"; text: string }
  | { kind: "tool"; name: string; input: unknown; output: unknown; is_error: boolean }
  | { kind: "execution"; start: ExecutionStart; end: ExecutionEnd | null }
  | {
      kind: "question";
      request_id: string;
      tool: string;
      input: unknown;
      decision: string | null;
      by: string | null;
      message: string | null;
    };

/** Queue wait, attempts, and in each attempt the model's turns, tools, programs and questions, in the order they began. */
export function stepsOf(run: Run, events: readonly StoredEvent[]): Step[] {
  const steps: Step[] = [];
  const open = new Map<string, Step>();
  let attempt: Step | null = null;
  let turn: Step | null = null;
  let turns = 0;
  /** Since when the model may have been thinking. */
  let idleSince = Date.parse(run.created_at);
  const began = run.claimed_at ?? run.started_at;
  if (began !== null || run.status === "pending")
    steps.push({
      id: "queue",
      depth: 0,
      label: began === null ? "Waits for a runner" : "Waited for a runner",
      note: null,
      tone: "idle",
      from: Date.parse(run.created_at),
      to: began === null ? null : Date.parse(events.find(({ n }) => n !== null)?.at ?? began),
      detail: { kind: "queue" },
    });
  const push = (step: Step): Step => (steps.push(step), step);
  for (const { seq, at: time, attempt: number, n, event } of events) {
    const at = Date.parse(time);
    if (n !== null && (attempt === null || attempt.detail.kind !== "attempt" || attempt.detail.attempt !== number)) {
      if (attempt) attempt.to ??= at;
      for (const step of open.values()) step.to ??= at;
      open.clear();
      attempt = push({
        id: `attempt-${number}`,
        depth: 0,
        label: `Attempt ${number}`,
        note: null,
        tone: "run",
        from: at,
        to: null,
        detail: { kind: "attempt", attempt: number },
      });
      turn = null;
      idleSince = at;
    }
    switch (event.type) {
      case "assistant":
      case "tool_use":
        if (turn === null) {
          turns += 1;
          turn = push({
            id: `turn-${turns}`,
            depth: 1,
            label: `Turn ${turns}`,
            note: null,
            tone: "run",
            from: idleSince,
            to: at,
            detail: { kind: "turn", text: "" },
          });
        }
        turn.to = at;
        if (event.type === "assistant") {
          turn.detail = { kind: "turn", text: event.text };
          turn.note = excerpt(event.text);
        } else
          open.set(
            event.tool_use_id,
            push({
              id: `tool-${seq}`,
              depth: 2,
              label: event.name,
              note: excerpt(inputLine(event.input)),
              tone: "run",
              from: at,
              to: null,
              detail: { kind: "tool", name: event.name, input: event.input, output: undefined, is_error: false },
            }),
          );
        break;
      case "tool_result": {
        const step = open.get(event.tool_use_id);
        turn = null;
        idleSince = at;
        if (step === undefined || step.detail.kind !== "tool") break;
        open.delete(event.tool_use_id);
        step.to = at;
        step.tone = event.is_error ? "bad" : "ok";
        step.detail = { ...step.detail, output: event.output, is_error: event.is_error };
        break;
      }
      case "execution_started":
        open.set(
          event.execution.execution_id,
          push({
            id: `execution-${event.execution.execution_id}`,
            depth: turns > 0 ? 2 : 1,
            label: event.execution.command,
            note: null,
            tone: "run",
            from: Date.parse(event.execution.started_at),
            to: null,
            detail: { kind: "execution", start: event.execution, end: null },
          }),
        );
        break;
      case "execution_ended": {
        const step = open.get(event.execution.execution_id);
        if (step === undefined || step.detail.kind !== "execution") break;
        open.delete(event.execution.execution_id);
        step.to = Date.parse(event.execution.ended_at);
        step.tone = event.execution.success ? "ok" : "bad";
        step.note = event.execution.exit_code === null ? event.execution.signal : `exit ${event.execution.exit_code}`;
        step.detail = { ...step.detail, end: event.execution };
        break;
      }
      case "permission_request":
        open.set(
          event.request_id,
          push({
            id: `question-${event.request_id}`,
            depth: 2,
            label: `Asks for ${event.tool}`,
            note: excerpt(inputLine(event.input)),
            tone: "wait",
            from: at,
            to: null,
            detail: {
              kind: "question",
              request_id: event.request_id,
              tool: event.tool,
              input: event.input,
              decision: null,
              by: null,
              message: null,
            },
          }),
        );
        break;
      case "permission_decision": {
        const step = open.get(event.request_id);
        if (step === undefined || step.detail.kind !== "question") break;
        open.delete(event.request_id);
        step.to = at;
        step.tone = event.decision === "allow" ? "ok" : "bad";
        step.detail = { ...step.detail, decision: event.decision, by: event.by, message: event.message ?? null };
        break;
      }
      case "result":
        for (const step of open.values()) step.to ??= at;
        if (attempt) {
          attempt.to = at;
          attempt.tone = event.status === "completed" ? "ok" : event.status === "failed" ? "bad" : "idle";
          attempt.note = event.reason;
        }
        break;
      default:
        break;
    }
  }
  return steps;
}

function excerpt(text: string): string | null {
  const line = text.trim().split("\n", 1)[0] ?? "";
  return line === "" ? null : line.length > 80 ? `${line.slice(0, 79)}…` : line;
}

/** What a tool was asked to do, in one line. */
export function inputLine(input: unknown): string {
  if (typeof input !== "object" || input === null) return String(input ?? "");
  for (const key of ["command", "file_path", "path", "pattern", "query", "url"]) {
    const value = Reflect.get(input, key) as unknown;
    if (typeof value === "string") return value;
  }
  return JSON.stringify(input);
}
