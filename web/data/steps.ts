import { type Activity, inputLine } from "./activity.ts";
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
  /** null while it is still in progress. */
  to: number | null;
  detail: StepDetail;
}

export type StepDetail =
  | { kind: "queue" }
  | Extract<Activity, { kind: "attempt" | "turn" | "tool" | "execution" | "question" | "user" }>;

/** The queue wait, then attempts with their turns, tools, programs and questions, ordered by start time. */
export function stepsOf(run: Run, activity: readonly Activity[]): Step[] {
  const steps = activity.map(stepOf).filter((step) => step !== null);
  const first = steps.find(({ detail }) => detail.kind === "attempt");
  const startedAt = run.claimed_at ?? run.started_at;
  if (startedAt === null && run.status !== "pending") return steps;
  const from = Date.parse(run.created_at);
  const queue: Step = {
    id: "queue",
    depth: 0,
    label: startedAt === null ? "Waiting for a runner" : "Waited for a runner",
    note: null,
    tone: "idle",
    from,
    to: startedAt === null ? null : Math.max(from, first?.from ?? Date.parse(startedAt)),
    detail: { kind: "queue" },
  };
  return [queue, ...steps];
}

function stepOf(one: Activity): Step | null {
  const { from, to } = one;
  const span = { id: one.key, from, to };
  switch (one.kind) {
    case "attempt":
      return {
        ...span,
        depth: 0,
        label: `Attempt ${one.number}`,
        note: one.result?.reason ?? null,
        tone: one.to === null ? "run" : toneOfResult(one.result?.status ?? null),
        detail: one,
      };
    case "turn":
      return { ...span, depth: 1, label: `Turn ${one.number}`, note: excerpt(one.text), tone: "run", detail: one };
    case "user":
      return { ...span, depth: 1, label: "Message", note: excerpt(one.text), tone: "idle", detail: one };
    case "tool":
      return {
        ...span,
        depth: 2,
        label: one.name,
        note: excerpt(inputLine(one.input)),
        tone: one.to === null ? "run" : one.output === undefined ? "idle" : one.is_error ? "bad" : "ok",
        detail: one,
      };
    case "execution":
      return {
        ...span,
        depth: one.inTurn ? 2 : 1,
        label: one.start.command,
        note: one.end === null ? null : one.end.exit_code === null ? one.end.signal : `exit ${one.end.exit_code}`,
        tone: one.to === null ? "run" : one.end === null ? "idle" : one.end.success ? "ok" : "bad",
        detail: one,
      };
    case "question":
      return {
        ...span,
        depth: 2,
        label: `Asks for ${one.tool}`,
        note: excerpt(inputLine(one.input)),
        tone: one.to === null ? "wait" : one.decision === "allow" ? "ok" : "bad",
        detail: one,
      };
    default:
      return null;
  }
}

function toneOfResult(status: string | null): Tone {
  return status === "completed" ? "ok" : status === "failed" ? "bad" : "idle";
}

/** Cumulative tokens and cost after each turn that reported usage. */
export function spendingOf(activity: readonly Activity[]): { at: number; tokens: number; cost: number | null }[] {
  let tokens = 0;
  let cost: number | null = null;
  return activity
    .filter((one): one is Extract<Activity, { kind: "usage" }> => one.kind === "usage")
    .map(({ from, usage }) => {
      tokens += usage.input_tokens + usage.output_tokens;
      if (usage.cost_usd !== null) cost = (cost ?? 0) + usage.cost_usd;
      return { at: from, tokens, cost };
    });
}

/** Whether the step's label, input or output contains the search text. */
export function matches({ label, detail }: Step, wanted: string): boolean {
  const texts = [label, ...textsOf(detail)];
  return texts.some((text) => text.toLowerCase().includes(wanted));
}

function textsOf(detail: StepDetail): string[] {
  switch (detail.kind) {
    case "turn":
    case "user":
      return [detail.text];
    case "tool":
      return [JSON.stringify(detail.input) ?? "", JSON.stringify(detail.output) ?? ""];
    case "question":
      return [JSON.stringify(detail.input) ?? "", detail.message ?? ""];
    default:
      return [];
  }
}

function excerpt(text: string): string | null {
  const line = text.trim().split("\n", 1)[0] ?? "";
  return line === "" ? null : line.length > 80 ? `${line.slice(0, 79)}…` : line;
}
