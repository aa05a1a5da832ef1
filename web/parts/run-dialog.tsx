import { useNavigate } from "@tanstack/react-router";
import type { Agent, Run } from "../data/queries.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { RunForm, type RunMode } from "./run-form.tsx";
import styles from "./form.module.css";

const titles: Record<RunMode, string> = { start: "Run", resume: "Resume", fork: "Fork" };

export function RunDialog({
  agent,
  from = null,
  mode = "start",
  onClose,
}: {
  agent: Agent;
  from?: Run | null;
  mode?: RunMode;
  onClose: () => void;
}) {
  const navigate = useNavigate();
  return (
    <Dialog open onOpenChange={(open) => open || onClose()} title={`${titles[mode]} ${agent.name}`} wide>
      <RunForm
        agent={agent}
        from={from}
        mode={mode}
        onStarted={(run) => {
          onClose();
          void navigate({ to: "/runs/$runId", params: { runId: run.run_id } });
        }}
      >
        {(busy) => (
          <div className={styles["foot"]}>
            <Button onClick={onClose}>Cancel</Button>
            <Button variant="primary" icon="runs" type="submit" disabled={busy}>
              {titles[mode]}
            </Button>
          </div>
        )}
      </RunForm>
    </Dialog>
  );
}
