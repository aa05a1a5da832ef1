import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useKeys } from "../../app/shortcuts.ts";
import { api } from "../../data/client.ts";
import { queries, queryClient } from "../../data/queries.ts";
import { sortAnswered } from "../../data/sort-answered.ts";
import { Card } from "../../parts/card.tsx";
import { Command } from "../../parts/command.tsx";
import { EmptyState } from "../../parts/empty-state.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { AnsweredRow, QuestionCard } from "../../parts/question-card.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";

/** Open questions of all runs, oldest first. */
export function Page() {
  const openQuestions = useQuery(queries.questions(true));
  const closedQuestions = useQuery(queries.questions(false));
  const agents = useQuery(queries.agents());
  const [currentIndex, setCurrentIndex] = useState(0);
  const [mode, setMode] = useState<{ id: string; mode: "edit" | "deny" } | null>(null);
  const questions = openQuestions.data?.items ?? [];
  const current = questions[Math.min(currentIndex, questions.length - 1)];
  const getMode = (id: string) => (mode?.id === id ? mode.mode : "view");
  const toId = (question: { run_id: string; request_id: string }): string =>
    `${question.run_id} ${question.request_id}`;
  useKeys({
    j: () => setCurrentIndex(Math.min(currentIndex + 1, questions.length - 1)),
    k: () => setCurrentIndex(Math.max(currentIndex - 1, 0)),
    e: () => current && setMode({ id: toId(current), mode: "edit" }),
    d: () => current && setMode({ id: toId(current), mode: "deny" }),
    a: () =>
      current &&
      getMode(toId(current)) === "view" &&
      void api.questions.answer(current.run_id, current.request_id, { decision: "allow" }).then(() => {
        toast(`Approved ${current.tool}`);
        return queryClient.invalidateQueries({ queryKey: ["questions"] });
      }, toastError),
  });
  return (
    <>
      <h1 style={{ marginBottom: 12 }}>
        {questions.length === 0
          ? "Inbox"
          : questions.length === 1
            ? "1 question is waiting for you"
            : `${openQuestions.data?.count ?? 0} questions are waiting for you`}
      </h1>
      {openQuestions.isError ? <ErrorNote error={openQuestions.error} /> : null}
      <div className="stack" style={{ maxWidth: 920 }}>
        <Card title="Open" note="oldest first" flush>
          {openQuestions.isPending ? (
            <Skeleton rows={3} />
          ) : questions.length === 0 ? (
            <EmptyState icon="inbox" title="No open questions">
              <p>When an agent needs a decision, its question appears here and the agent waits.</p>
              {agents.data?.some(({ name }) => name === "checklist") ? (
                <>
                  <p>To try it, run the checklist agent:</p>
                  <Command text={"drover run checklist --steps 'Buy milk'"} />
                </>
              ) : null}
            </EmptyState>
          ) : (
            questions.map((question, index) => (
              <QuestionCard
                key={toId(question)}
                question={question}
                isCurrent={question === current && index === Math.min(currentIndex, questions.length - 1)}
                mode={getMode(toId(question))}
                setMode={(next) => setMode(next === "view" ? null : { id: toId(question), mode: next })}
              />
            ))
          )}
        </Card>
        {closedQuestions.data && closedQuestions.data.items.length > 0 ? (
          <Card title="Answered" note="newest last" flush>
            <ul>
              {sortAnswered(closedQuestions.data.items)
                .slice(-20)
                .map((question) => (
                  <AnsweredRow key={toId(question)} question={question} />
                ))}
            </ul>
          </Card>
        ) : null}
      </div>
    </>
  );
}
