import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api } from "../../data/client.ts";
import { faultsOf } from "../../data/faults.ts";
import { queries, type Schedule } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Field } from "../../parts/field.tsx";
import { refreshSchedules } from "../../parts/schedule-table.tsx";
import { SchemaForm } from "../../parts/schema-form.tsx";
import { ownZone } from "../../parts/time.tsx";
import { toast } from "../../parts/toasts.tsx";
import { type Draft, draftOf, send, timingOf } from "./draft.ts";
import { Preview, usePreview } from "./preview.tsx";
import { TimingFields } from "./timing-fields.tsx";
import formStyles from "../../parts/form.module.css";
import styles from "./page.module.css";

const overlapWords: Record<Draft["overlap"], string> = {
  skip: "Skip the slot",
  queue: "Queue: run when the last one has ended",
  cancel_previous: "Stop the last run first",
  allow: "Run beside it",
};
const catchUpWords: Record<Draft["catch_up"], string> = {
  none: "Leave them out",
  one: "Run once, late",
};

/** `onDone` gets the schedule once it is saved, null when somebody cancels. */
export function ScheduleForm({
  schedule,
  agentName = "",
  onDone,
}: {
  schedule: Schedule | null;
  agentName?: string;
  onDone: (saved: Schedule | null) => void;
}) {
  const [draft, setDraft] = useState(() => draftOf(schedule, agentName, ownZone));
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const agents = useQuery(queries.agents()).data ?? [];
  const set = (change: Partial<Draft>): void => setDraft((before) => ({ ...before, ...change }));
  const preview = usePreview(timingOf(draft));
  const faults = faultsOf(error);
  const agent = agents.find(({ name }) => name === draft.agent_name);
  const names = [...new Set([...agents.map(({ name }) => name), draft.agent_name])].filter(Boolean).sort();
  const procedural = agent?.type === "procedural";
  const save = (event: FormEvent): void => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    send(api, schedule, draft)
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
                  fault={faults.get("agent_name")}
                  {...(schedule === null ? {} : { help: "It stays with its agent." })}
                >
                  {(input) => (
                    <select
                      {...input}
                      disabled={schedule !== null}
                      value={draft.agent_name}
                      onChange={(event) => set({ agent_name: event.target.value, parameters: {} })}
                    >
                      <option value="">Choose one</option>
                      {names.map((name) => (
                        <option key={name}>{name}</option>
                      ))}
                    </select>
                  )}
                </Field>
                <Field label="Name" fault={faults.get("name")}>
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
              <TimingFields draft={draft} faults={faultsOf(preview.query.error)} onChange={set} />
            </div>
          </Card>
          <Card title="Policies">
            <div className={formStyles["form"]}>
              <Field label="While the last run has not ended" fault={faults.get("overlap")}>
                {(input) => (
                  <select
                    {...input}
                    value={draft.overlap}
                    onChange={(event) => set({ overlap: event.target.value as Draft["overlap"] })}
                  >
                    {Object.entries(overlapWords).map(([policy, word]) => (
                      <option key={policy} value={policy}>
                        {word}
                      </option>
                    ))}
                  </select>
                )}
              </Field>
              <Field
                label="After missed slots"
                fault={faults.get("catch_up")}
                help="Slots are missed while no coordinator is up, or its host is asleep."
              >
                {(input) => (
                  <select
                    {...input}
                    value={draft.catch_up}
                    onChange={(event) => set({ catch_up: event.target.value as Draft["catch_up"] })}
                  >
                    {Object.entries(catchUpWords).map(([policy, word]) => (
                      <option key={policy} value={policy}>
                        {word}
                      </option>
                    ))}
                  </select>
                )}
              </Field>
              <Field label="Questions of its runs" fault={faults.get("attended")}>
                {(input) => (
                  <select
                    {...input}
                    value={String(draft.attended)}
                    onChange={(event) => set({ attended: attendedOf(event.target.value) })}
                  >
                    <option value="null">As the agent says</option>
                    <option value="true">Go to people</option>
                    <option value="false">Go to nobody</option>
                  </select>
                )}
              </Field>
              {procedural && !draft.resume_session ? null : (
                <Check
                  word="Each run continues the session of the last one"
                  fault={faults.get("resume_session")}
                  checked={draft.resume_session}
                  onChange={(resume_session) => set({ resume_session })}
                />
              )}
              <Check word="Enabled" checked={draft.enabled} onChange={(enabled) => set({ enabled })} />
            </div>
          </Card>
        </div>
        <div className="stack">
          <Preview schedule={schedule} {...preview} />
          <Card title="Each run" note={agent === undefined ? undefined : `of ${agent.name}`}>
            {agent === undefined ? (
              <p className="faint">
                {draft.agent_name === "" ? "Choose an agent first." : "This agent is not there now."}
              </p>
            ) : (
              <div className={formStyles["form"]}>
                {procedural ? null : (
                  <Field label="Prompt" fault={faults.get("prompt")}>
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
                {procedural || agent.parameters_schema !== undefined ? (
                  <SchemaForm
                    // what is typed as JSON is kept by its field
                    key={agent.name}
                    schema={agent.parameters_schema}
                    values={draft.parameters}
                    onChange={(parameters) => set({ parameters })}
                    faults={faultsOf(error, "body.parameters")}
                  />
                ) : null}
              </div>
            )}
          </Card>
        </div>
      </div>
      <div className={formStyles["foot"]}>
        <Button onClick={() => onDone(null)}>Cancel</Button>
        <Button look="primary" type="submit" disabled={busy}>
          {schedule === null ? "Create" : "Save"}
        </Button>
      </div>
    </form>
  );
}

function attendedOf(value: string): boolean | null {
  return value === "null" ? null : value === "true";
}

function Check({
  word,
  checked,
  fault,
  onChange,
}: {
  word: string;
  checked: boolean;
  fault?: string | undefined;
  onChange: (checked: boolean) => void;
}) {
  return (
    <div className={formStyles["field"]}>
      <label className={formStyles["check"]}>
        <input type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} />
        {word}
      </label>
      {fault === undefined ? null : <p className={formStyles["fault"]}>{fault}</p>}
    </div>
  );
}
