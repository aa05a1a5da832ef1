import { type FormEvent, type ReactNode, useId, useState } from "react";
import { api } from "../data/client.ts";
import { getErrorsByField } from "../data/errors-by-field.ts";
import type { Agent, Run } from "../data/queries.ts";
import { ErrorNote } from "./error-note.tsx";
import { SchemaForm, type Values } from "./schema-form.tsx";
import styles from "./form.module.css";

export type RunMode = "start" | "resume" | "fork";

/** Asks for an agent's prompt or parameters and starts a run. */
export function RunForm({
  agent,
  from = null,
  mode = "start",
  trigger = "api",
  onStarted,
  children,
}: {
  agent: Agent;
  from?: Run | null;
  mode?: RunMode;
  trigger?: "api" | "chat";
  onStarted: (run: Run) => void;
  /** Renders the form's buttons, one of them of type submit. */
  children: (busy: boolean) => ReactNode;
}) {
  const isContinuation = mode !== "start";
  const [values, setValues] = useState<Values>(() => (isContinuation ? {} : (from?.parameters ?? {})));
  const [prompt, setPrompt] = useState(() => (isContinuation ? "" : (from?.prompt ?? "")));
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const id = useId();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    api
      .submit({
        agent_name: agent.name,
        mode,
        trigger_type: trigger,
        ...(Object.keys(values).length > 0 ? { parameters: values } : {}),
        ...(prompt === "" ? {} : { prompt }),
        // The user is present to answer questions.
        ...(agent.type === "autonomous" ? { attended: true } : {}),
        ...(isContinuation && from?.session_id ? { session_id: from.session_id } : {}),
      })
      .then(onStarted, setError)
      .finally(() => setBusy(false));
  };
  const isProcedural = agent.type === "procedural";
  const hasParameters = agent.parameters_schema !== undefined;
  return (
    <form onSubmit={submit} noValidate>
      <div className={styles["form"]}>
        {error === null ? null : <ErrorNote error={error} />}
        {isProcedural ? null : (
          <div className={styles["field"]}>
            <label htmlFor={id}>{isContinuation ? "Message" : "Prompt"}</label>
            <textarea id={id} rows={4} value={prompt} onChange={(event) => setPrompt(event.target.value)} />
          </div>
        )}
        {(isProcedural || hasParameters) && !isContinuation ? (
          <SchemaForm
            schema={agent.parameters_schema}
            values={values}
            onChange={setValues}
            faults={getErrorsByField(error, "body.parameters")}
          />
        ) : null}
      </div>
      {children(busy)}
    </form>
  );
}
