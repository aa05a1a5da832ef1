import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { queries } from "../../data/queries.ts";
import { Card } from "../../parts/card.tsx";
import { QuestionCard } from "../../parts/question-card.tsx";

/** Open questions of the run's child runs, shown here so that users need not open the child. */
export function ChildQuestions({ run_id }: { run_id: string }) {
  const open = useQuery(queries.questions(true)).data?.items ?? [];
  const [mode, setMode] = useState<{ id: string; mode: "edit" | "deny" } | null>(null);
  const questions = open.filter(({ parents }) => parents.some((parent) => parent.run_id === run_id));
  if (questions.length === 0) return null;
  return (
    <div style={{ marginTop: 12 }}>
      <Card title="Questions from child runs" flush>
        {questions.map((question) => {
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
      </Card>
    </div>
  );
}
