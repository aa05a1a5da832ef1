import type { SkipReason } from "../../src/model/schedule.ts";
import type { Schedule, Slot } from "../data/queries.ts";
import { StatusMark, Status } from "./status.tsx";

const reasons: Record<SkipReason, { label: string; explanation: string; isFailure: boolean }> = {
  overlap: { label: "overlap", explanation: "The previous run had not finished", isFailure: false },
  queue_full: { label: "queue full", explanation: "100 of its runs are already queued", isFailure: true },
  disabled: { label: "disabled", explanation: "The schedule was disabled", isFailure: false },
  missed: { label: "missed", explanation: "No coordinator started the run in time", isFailure: true },
  agent_gone: { label: "agent gone", explanation: "The agent no longer exists", isFailure: true },
  refused: { label: "refused", explanation: "The run was refused", isFailure: true },
};

/** Shows the reason of a skipped slot, or the status of the slot's run. */
export function SlotState({ slot }: { slot: Slot }) {
  if (slot.why !== null) {
    const { label, isFailure } = reasons[slot.why];
    return (
      <StatusMark
        icon={isFailure ? "warn" : "skip"}
        tone={isFailure ? "wait" : "idle"}
        status="skipped"
        label={`Skipped: ${label}`}
      />
    );
  }
  if (slot.run_status !== null) return <Status status={slot.run_status} />;
  return <StatusMark icon="idle" tone="idle" status="fired" label="Run removed" />;
}

/** Explains why the slot has no run, or why its run failed. */
export function describeSlotReason({ why, detail, run_reason }: Slot): string {
  if (why === null) return run_reason ?? "";
  return detail === null ? reasons[why].explanation : `${reasons[why].explanation}: ${detail}`;
}

/** Whether the schedule needs attention: its last run failed, or its last slot was skipped because of a failure. */
export function isFailing({ last }: Schedule): boolean {
  if (last === null) return false;
  return last.run_status === "failed" || (last.why !== null && reasons[last.why].isFailure);
}
