import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api } from "../../data/client.ts";
import { getErrorsByField } from "../../data/errors-by-field.ts";
import { queries, type Schedule } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Field } from "../../parts/field.tsx";
import { refreshSchedules } from "../../parts/schedule-table.tsx";
import { SchemaForm } from "../../parts/schema-form.tsx";
import { browserZone } from "../../parts/time.tsx";
import { toast } from "../../parts/toasts.tsx";
import { type Draft, toDraft, saveDraft, toTiming } from "./draft.ts";
import { PolicyFields } from "./policy-fields.tsx";
import { Preview, usePreview } from "./preview.tsx";
import { TimingFields } from "./timing-fields.tsx";
import formStyles from "../../parts/form.module.css";
import styles from "./page.module.css";

/** Calls `onDone` with the saved schedule, or with null on cancel. */
export function ScheduleForm({
  schedule,
  agentName = "",
  onDone,
}: {
  schedule: Schedule | null;
  agentName?: string;
  onDone: (saved: Schedule | null) => void;
}) {
  const [draft, setDraft] = useState(() => toDraft(schedule, agentName, browserZone));
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const agents = useQuery(queries.agents()).data ?? [];
  const set = (change: Partial<Draft>): void => setDraft((previous) => ({ ...previous, ...change }));
  const preview = usePreview(toTiming(draft));
  const faults = getErrorsByField(error);
  const agent = agents.find(({ name }) => name === draft.agent_name);
  const names = [...new Set([...agents.map(({ name }) => name), draft.agent_name])].filter(Boolean).sort();
  const isProcedural = agent?.type === "procedural";
  const save = (event: FormEvent): void => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    saveDraft(api, schedule, draft)
      .then(async (saved) => {
        await refreshSchedules();
        toast(`Saved ${saved.name}`);
        onDone(saved);
      })
      .catch(setError)
      .finally(() => setBusy(false));
  };
  return (
    <form onSubmit={save} noValidate>
      {error === null ? null : <ErrorNote error={error} />}
      <div className={styles["panes"]}>
        <div className="stack">
          <Card title="Schedule">
            <div className={formStyles["form"]}>
              <div className={styles["pair"]}>
                <Field
                  label="Agent"
                  error={faults.get("agent_name")}
                  {...(schedule === null ? {} : { help: "A schedule cannot move to another agent." })}
                >
                  {(input) => (
                    <select
                      {...input}
                      disabled={schedule !== null}
                      value={draft.agent_name}
                      onChange={(event) => set({ agent_name: event.target.value, parameters: {} })}
                    >
                      <option value="">Choose an agent</option>
                      {names.map((name) => (
                        <option key={name}>{name}</option>
                      ))}
                    </select>
                  )}
                </Field>
                <Field label="Name" error={faults.get("name")}>
                  {(input) => (
                    <input
                      {...input}
                      placeholder="nightly"
                      value={draft.name}
                      onChange={(event) => set({ name: event.target.value })}
                    />
                  )}
                </Field>
              </div>
              <TimingFields draft={draft} faults={getErrorsByField(preview.query.error)} onChange={set} />
            </div>
          </Card>
          <PolicyFields draft={draft} faults={faults} isProcedural={isProcedural} onChange={set} />
        </div>
        <div className="stack">
          <Preview schedule={schedule} {...preview} />
          <Card title="Each run" note={agent === undefined ? undefined : `of ${agent.name}`}>
            {agent === undefined ? (
              <p className="faint">
                {draft.agent_name === "" ? "Choose an agent first." : "This agent is not available."}
              </p>
            ) : (
              <div className={formStyles["form"]}>
                {isProcedural ? null : (
                  <Field label="Prompt" error={faults.get("prompt")}>
                    {(input) => (
                      <textarea
                        {...input}
                        rows={4}
                        value={draft.prompt}
                        onChange={(event) => set({ prompt: event.target.value })}
                      />
                    )}
                  </Field>
                )}
                {isProcedural || agent.parameters_schema !== undefined ? (
                  <SchemaForm
                    // The JSON field keeps the text that is being typed.
                    key={agent.name}
                    schema={agent.parameters_schema}
                    values={draft.parameters}
                    onChange={(parameters) => set({ parameters })}
                    faults={getErrorsByField(error, "body.parameters")}
                  />
                ) : null}
              </div>
            )}
          </Card>
        </div>
      </div>
      <div className={formStyles["foot"]}>
        <Button onClick={() => onDone(null)}>Cancel</Button>
        <Button variant="primary" type="submit" disabled={busy}>
          {schedule === null ? "Create" : "Save"}
        </Button>
      </div>
    </form>
  );
}
