import { type Activity, summarizeInput } from "./activity.ts";
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
  /** null while the step is in progress. */
  to: number | null;
  detail: StepDetail;
}

export type StepDetail =
  | { kind: "queue" }
  | Extract<Activity, { kind: "attempt" | "turn" | "tool" | "execution" | "question" | "user" }>;

/** Returns the queue wait, then attempts with their turns, tools, programs and questions, ordered by start time. */
export function toSteps(run: Run, activity: readonly Activity[]): Step[] {
  const steps = activity.map(toStep).filter((step) => step !== null);
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

function toStep(activity: Activity): Step | null {
  const { from, to } = activity;
  const span = { id: activity.key, from, to };
  switch (activity.kind) {
    case "attempt":
      return {
        ...span,
        depth: 0,
        label: `Attempt ${activity.number}`,
        note: activity.result?.reason ?? null,
        tone: activity.to === null ? "run" : getResultTone(activity.result?.status ?? null),
        detail: activity,
      };
    case "turn":
      return {
        ...span,
        depth: 1,
        label: `Turn ${activity.number}`,
        note: toExcerpt(activity.text),
        tone: "run",
        detail: activity,
      };
    case "user":
      return { ...span, depth: 1, label: "Message", note: toExcerpt(activity.text), tone: "idle", detail: activity };
    case "tool":
      return {
        ...span,
        depth: 2,
        label: activity.name,
        note: toExcerpt(summarizeInput(activity.input)),
        tone: activity.to === null ? "run" : activity.output === undefined ? "idle" : activity.is_error ? "bad" : "ok",
        detail: activity,
      };
    case "execution":
      return {
        ...span,
        depth: activity.inTurn ? 2 : 1,
        label: activity.start.command,
        note:
          activity.end === null
            ? null
            : activity.end.exit_code === null
              ? activity.end.signal
              : `exit ${activity.end.exit_code}`,
        tone: activity.to === null ? "run" : activity.end === null ? "idle" : activity.end.success ? "ok" : "bad",
        detail: activity,
      };
    case "question":
      return {
        ...span,
        depth: 2,
        label: `Asks to use ${activity.tool}`,
        note: toExcerpt(summarizeInput(activity.input)),
        tone: activity.to === null ? "wait" : activity.decision === "allow" ? "ok" : "bad",
        detail: activity,
      };
    default:
      return null;
  }
}

function getResultTone(status: string | null): Tone {
  return status === "completed" ? "ok" : status === "failed" ? "bad" : "idle";
}

/** Returns the cumulative tokens and cost after each turn that reported usage. */
export function toSpending(activity: readonly Activity[]): { at: number; tokens: number; cost: number | null }[] {
  let tokens = 0;
  let cost: number | null = null;
  return activity
    .filter((item): item is Extract<Activity, { kind: "usage" }> => item.kind === "usage")
    .map(({ from, usage }) => {
      tokens += usage.input_tokens + usage.output_tokens;
      if (usage.cost_usd !== null) cost = (cost ?? 0) + usage.cost_usd;
      return { at: from, tokens, cost };
    });
}

/** Whether the step's label, input or output contains the search text. */
export function matchesText({ label, detail }: Step, searchText: string): boolean {
  const texts = [label, ...listSearchableTexts(detail)];
  return texts.some((text) => text.toLowerCase().includes(searchText));
}

function listSearchableTexts(detail: StepDetail): string[] {
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

function toExcerpt(text: string): string | null {
  const line = text.trim().split("\n", 1)[0] ?? "";
  return line === "" ? null : line.length > 80 ? `${line.slice(0, 79)}…` : line;
}
