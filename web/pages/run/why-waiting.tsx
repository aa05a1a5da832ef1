import { useQuery } from "@tanstack/react-query";
import { api } from "../../data/client.ts";
import { queries, queryClient, type Run } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { formatDateTime } from "../../parts/time.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import styles from "./why-waiting.module.css";

const parkedDescriptions = {
  approval: "is waiting for an answer and uses no runner until then",
  budget: "has spent its budget",
  usage_limit: "has reached the usage limit of its account",
};

export function WhyWaiting({ run }: { run: Run }) {
  const reasons = useQuery({ ...queries.why(run.run_id), enabled: run.status === "pending", refetchInterval: 5000 });
  const lines =
    run.status === "pending"
      ? (reasons.data?.why ?? []).map(({ detail }) => detail)
      : run.status === "parked" && run.parked_why
        ? [
            `The run ${parkedDescriptions[run.parked_why]}${run.parked_until ? `, and continues automatically at ${formatDateTime(run.parked_until)}` : ""}.`,
          ]
        : [];
  if (lines.length === 0) return null;
  const resume = (): void =>
    void api.runs
      .resume(run.run_id)
      .then(() => (toast("Run resumed"), queryClient.invalidateQueries({ queryKey: ["run", run.run_id] })), toastError);
  return (
    <div className={styles["why"]} role="status">
      <Icon name="wait" />
      <div>
        {lines.map((line) => (
          <p key={line}>{line}</p>
        ))}
      </div>
      {run.status === "parked" && run.parked_why !== "approval" ? (
        <span className="push">
          <Button icon="runs" onClick={resume}>
            Continue now
          </Button>
        </span>
      ) : null}
    </div>
  );
}
