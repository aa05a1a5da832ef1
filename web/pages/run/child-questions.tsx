import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { queries } from "../../data/queries.ts";
import { Card } from "../../parts/card.tsx";
import { QuestionCard } from "../../parts/question-card.tsx";

/** What runs that this one started ask: whoever looks at the parent need not look for the child. */
export function ChildQuestions({ run_id }: { run_id: string }) {
  const open = useQuery(queries.questions(true)).data?.items ?? [];
  const [mode, setMode] = useState<{ id: string; mode: "edit" | "deny" } | null>(null);
  const asked = open.filter(({ parents }) => parents.some((parent) => parent.run_id === run_id));
  if (asked.length === 0) return null;
  return (
    <div style={{ marginTop: 12 }}>
      <Card title="A run that this one started asks" flush>
        {asked.map((question) => {
          const id = `${question.run_id} ${question.request_id}`;
          return (
            <QuestionCard
              key={id}
              question={question}
              mode={mode?.id === id ? mode.mode : "look"}
              setMode={(next) => setMode(next === "look" ? null : { id, mode: next })}
            />
          );
        })}
      </Card>
    </div>
  );
}
