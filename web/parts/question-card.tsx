import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../data/client.ts";
import { queries, type Question, queryClient } from "../data/queries.ts";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";
import { JsonField } from "./schema-form.tsx";
import { Age, formatRemainingTime, useNow } from "./time.tsx";
import { toast, toastError } from "./toasts.tsx";
import { ToolInput } from "./tool-input.tsx";
import styles from "./question-card.module.css";

type Mode = "view" | "edit" | "deny";

const effectLabels = {
  read: "reads something",
  edit: "changes something",
  execute: "runs a command",
  network: "uses the network",
};

/** A run's question with the exact tool input and the possible answers. */
export function QuestionCard({
  question,
  mode,
  setMode,
  withRun = true,
  isCurrent = false,
}: {
  question: Question;
  mode: Mode;
  setMode: (mode: Mode) => void;
  /** Whether to link to the run. Off on the run's own page. */
  withRun?: boolean;
  /** Whether the keyboard shortcuts act on this question. */
  isCurrent?: boolean;
}) {
  const [remember, setRemember] = useState(false);
  const [input, setInput] = useState<unknown>(question.input);
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const answer = (body: Parameters<typeof api.questions.answer>[2], pastTense: string): void => {
    setBusy(true);
    api.questions
      .answer(question.run_id, question.request_id, body)
      .then(() => toast(`${pastTense} ${question.tool}`), toastError)
      .finally(() => {
        setBusy(false);
        setMode("view");
        void queryClient.invalidateQueries({ queryKey: ["questions"] });
        void queryClient.invalidateQueries({ queryKey: ["run", question.run_id] });
      });
  };
  const rememberOption = remember ? ({ remember: "session" } as const) : {};
  const approve = (): void =>
    answer({ decision: "allow", ...rememberOption, ...(mode === "edit" ? { input } : {}) }, "Approved");
  const deny = (decision: "deny" | "stop"): void =>
    answer(
      { decision, ...(reason.trim() === "" ? {} : { message: reason.trim() }) },
      decision === "deny" ? "Denied" : "Stopped",
    );
  return (
    <article
      className={styles["card"]}
      data-current={isCurrent || undefined}
      aria-label={`${question.agent_name} asks to use ${question.tool}`}
    >
      <div className="row wrap">
        <span className={styles["icon"]}>
          <Icon name="wait" />
        </span>
        {withRun ? (
          <Link to="/runs/$runId" params={{ runId: question.run_id }} className={styles["agent"]}>
            {question.agent_name}
          </Link>
        ) : null}
        <span className="dim">asks to use</span>
        <code>{question.tool}</code>
        {question.effect ? <span className="dim">({effectLabels[question.effect]})</span> : null}
        {question.parents.map(({ run_id, agent_name }) => (
          <Link key={run_id} to="/runs/$runId" params={{ runId: run_id }} className="dim">
            for {agent_name}
          </Link>
        ))}
        <span className="faint push">
          <Age at={question.asked_at} />
        </span>
      </div>
      {mode === "edit" ? (
        <JsonField
          label="Input"
          help="The tool runs with this input instead."
          value={input}
          onChange={setInput}
          rows={6}
          autoFocus
        />
      ) : (
        <ToolInput input={question.input} />
      )}
      {mode === "deny" ? (
        <label className={styles["reason"]}>
          <span className="dim">Reason for the agent (optional)</span>
          <textarea rows={2} autoFocus value={reason} onChange={(event) => setReason(event.target.value)} />
        </label>
      ) : null}
      <div className="row wrap">
        {mode === "deny" ? (
          <>
            <Button variant="danger" disabled={busy} onClick={() => deny("deny")}>
              Deny
            </Button>
            <Button variant="danger" icon="stop" disabled={busy} onClick={() => deny("stop")}>
              Deny and stop the run
            </Button>
            <Button variant="quiet" onClick={() => setMode("view")}>
              Back
            </Button>
          </>
        ) : (
          <>
            <Button variant="primary" disabled={busy} shortcut={isCurrent ? "A" : ""} onClick={approve}>
              {mode === "edit" ? "Approve the changed input" : "Approve"}
            </Button>
            {mode === "edit" ? (
              <Button variant="quiet" onClick={() => setMode("view")}>
                Back
              </Button>
            ) : (
              <Button shortcut={isCurrent ? "E" : ""} onClick={() => setMode("edit")}>
                Edit
              </Button>
            )}
            <Button variant="danger" shortcut={isCurrent ? "D" : ""} onClick={() => setMode("deny")}>
              Deny
            </Button>
            <label className={styles["remember"]}>
              <input type="checkbox" checked={remember} onChange={() => setRemember(!remember)} /> Do not ask again in
              this session
            </label>
          </>
        )}
        <Expiry at={question.expires_at} />
      </div>
    </article>
  );
}

/** An open question on its run's page. */
export function OpenQuestion({ run_id, request_id }: { run_id: string; request_id: string }) {
  const questions = useQuery(queries.runQuestions(run_id));
  const [mode, setMode] = useState<Mode>("view");
  const question = questions.data?.find((candidate) => candidate.request_id === request_id);
  if (question === undefined) return <p className="dim">Waiting for an answer.</p>;
  return (
    <>
      <QuestionCard question={question} mode={mode} setMode={setMode} withRun={false} />
      <p className="faint">
        While it waits, the run may be parked: it releases its runner and resumes when you answer.
      </p>
    </>
  );
}

function Expiry({ at }: { at: string }) {
  const remainingMs = Date.parse(at) - useNow();
  return (
    <span className="faint push">{remainingMs > 0 ? `expires in ${formatRemainingTime(remainingMs)}` : "expired"}</span>
  );
}

const decisionLabels = {
  allow: "Approved",
  deny: "Denied",
  stop: "Stopped",
  expired: "Expired",
  superseded: "Asked again",
};

/** A closed question with its decision. */
export function AnsweredRow({ question }: { question: Question }) {
  const decision = question.decision ?? "expired";
  const approved = decision === "allow";
  return (
    <li className={styles["answered"]} data-approved={approved}>
      <Icon name={approved ? "ok" : "close"} />
      <b>{decisionLabels[decision]}</b>
      <Link to="/runs/$runId" params={{ runId: question.run_id }}>
        {question.agent_name}
      </Link>
      <code className="ellipsis">{question.tool}</code>
      <span className="dim ellipsis grow">{question.message ?? ""}</span>
      <span className="faint">{question.answered_by ? `by ${question.answered_by}` : ""}</span>
      <span className="faint">{question.answered_at ? <Age at={question.answered_at} /> : null}</span>
    </li>
  );
}
