import { useQuery } from "@tanstack/react-query";
import { queries, type Run } from "../../data/queries.ts";
import { Icon } from "../../parts/icon.tsx";
import { exact } from "../../parts/time.tsx";
import styles from "./why-waiting.module.css";

const parked = {
  approval: "waits for an answer; nothing of it is running meanwhile",
  budget: "has spent its budget",
  usage_limit: "has met the usage limit of its account",
};

export function WhyWaiting({ run }: { run: Run }) {
  const why = useQuery({ ...queries.why(run.run_id), enabled: run.status === "pending", refetchInterval: 5000 });
  const lines =
    run.status === "pending"
      ? (why.data?.why ?? []).map(({ detail }) => detail)
      : run.status === "parked" && run.parked_why
        ? [
            `It ${parked[run.parked_why]}${run.parked_until ? `, and continues by itself at ${exact(run.parked_until)}` : ""}.`,
          ]
        : [];
  if (lines.length === 0) return null;
  return (
    <div className={styles["why"]} role="status">
      <Icon name="wait" />
      <div>
        {lines.map((line) => (
          <p key={line}>{line}</p>
        ))}
      </div>
    </div>
  );
}
