import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { queries, type RunRow } from "../../data/queries.ts";
import { Card } from "../../parts/card.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { QuestionCard } from "../../parts/question-card.tsx";
import { Status } from "../../parts/status.tsx";
import { Age } from "../../parts/time.tsx";
import styles from "./needs-you.module.css";

const maxQuestions = 3;

/** Open questions, and runs parked by a budget or a usage limit. */
export function NeedsYou({ parked }: { parked: readonly RunRow[] }) {
  const open = useQuery(queries.questions(true));
  const [mode, setMode] = useState<{ id: string; mode: "edit" | "deny" } | null>(null);
  const questions = open.data?.items ?? [];
  return (
    <Card title="Needs you" note={questions.length > 0 ? "oldest first" : undefined} flush>
      {open.isPending ? (
        <Skeleton rows={2} />
      ) : questions.length + parked.length === 0 ? (
        <p className={`faint ${styles["none"]}`}>Nothing is waiting for an answer.</p>
      ) : (
        <>
          {questions.slice(0, maxQuestions).map((question) => {
            const id = `${question.run_id} ${question.request_id}`;
            return (
              <QuestionCard
                key={id}
                question={question}
                mode={mode?.id === id ? mode.mode : "view"}
                setMode={(next) => setMode(next === "view" ? null : { id, mode: next })}
              />
            );
          })}
          {questions.length > maxQuestions ? (
            <p className={styles["none"]}>
              <Link to="/inbox">{(open.data?.count ?? questions.length) - maxQuestions} more in the inbox</Link>
            </p>
          ) : null}
          <ul>
            {parked.map((run) => (
              <li key={run.run_id} className={styles["row"]}>
                <Status status={run.status} />
                <Link to="/runs/$runId" params={{ runId: run.run_id }}>
                  {run.agent_name}
                </Link>
                <span className="dim grow ellipsis">
                  {run.parked_why === "budget"
                    ? "has spent its budget"
                    : run.parked_why === "usage_limit"
                      ? "has reached a usage limit"
                      : ""}
                </span>
                <span className="faint">
                  <Age at={run.created_at} />
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </Card>
  );
}
