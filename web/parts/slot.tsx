import type { SkipReason } from "../../src/model/schedule.ts";
import type { Schedule, Slot } from "../data/queries.ts";
import { Mark, Status } from "./status.tsx";

const reasons: Record<SkipReason, { word: string; why: string; bad: boolean }> = {
  overlap: { word: "overlap", why: "The previous run had not finished", bad: false },
  queue_full: { word: "queue full", why: "100 of its runs are already queued", bad: true },
  disabled: { word: "disabled", why: "The schedule was disabled", bad: false },
  missed: { word: "missed", why: "No coordinator fired it in time", bad: true },
  agent_gone: { word: "agent gone", why: "The agent no longer exists", bad: true },
  refused: { word: "refused", why: "The run was refused", bad: true },
};

/** A skipped slot shows its reason. A slot that fired shows the status of its run. */
export function SlotState({ slot }: { slot: Slot }) {
  if (slot.why !== null) {
    const { word, bad } = reasons[slot.why];
    return (
      <Mark icon={bad ? "warn" : "skip"} tone={bad ? "wait" : "idle"} status="skipped" word={`Skipped: ${word}`} />
    );
  }
  if (slot.run_status !== null) return <Status status={slot.run_status} />;
  return <Mark icon="idle" tone="idle" status="fired" word="Run removed" />;
}

/** Explains why the slot has no run, or why its run failed. */
export function whyOf({ why, detail, run_reason }: Slot): string {
  if (why === null) return run_reason ?? "";
  return detail === null ? reasons[why].why : `${reasons[why].why}: ${detail}`;
}

/** Whether the schedule needs attention: its last run failed, or its last slot was lost. */
export function isFailing({ last }: Schedule): boolean {
  if (last === null) return false;
  return last.run_status === "failed" || (last.why !== null && reasons[last.why].bad);
}
