import { Card } from "../../parts/card.tsx";
import { Field } from "../../parts/field.tsx";
import type { Draft } from "./draft.ts";
import formStyles from "../../parts/form.module.css";

const overlapLabels: Record<Draft["overlap"], string> = {
  skip: "Skip the slot",
  queue: "Queue: run when the previous one finishes",
  cancel_previous: "Stop the previous run first",
  allow: "Run both at once",
};
const catchUpLabels: Record<Draft["catch_up"], string> = {
  none: "Skip them",
  one: "Run once, as soon as possible",
};

export function PolicyFields({
  draft,
  faults,
  isProcedural,
  onChange,
}: {
  draft: Draft;
  faults: ReadonlyMap<string, string>;
  /** A procedural agent has no conversation to continue. */
  isProcedural: boolean;
  onChange: (change: Partial<Draft>) => void;
}) {
  return (
    <Card title="Policies">
      <div className={formStyles["form"]}>
        <Field label="If the previous run is still active" error={faults.get("overlap")}>
          {(input) => (
            <select
              {...input}
              value={draft.overlap}
              onChange={(event) => onChange({ overlap: event.target.value as Draft["overlap"] })}
            >
              {Object.entries(overlapLabels).map(([policy, label]) => (
                <option key={policy} value={policy}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field
          label="After missed slots"
          error={faults.get("catch_up")}
          help="Slots are missed while no coordinator is running or its host is asleep."
        >
          {(input) => (
            <select
              {...input}
              value={draft.catch_up}
              onChange={(event) => onChange({ catch_up: event.target.value as Draft["catch_up"] })}
            >
              {Object.entries(catchUpLabels).map(([policy, label]) => (
                <option key={policy} value={policy}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Questions from its runs" error={faults.get("attended")}>
          {(input) => (
            <select
              {...input}
              value={String(draft.attended)}
              onChange={(event) => onChange({ attended: parseAttended(event.target.value) })}
            >
              <option value="null">Agent's default</option>
              <option value="true">Ask people</option>
              <option value="false">Do not ask</option>
            </select>
          )}
        </Field>
        {isProcedural && !draft.resume_session ? null : (
          <Check
            label="Each run continues the session of the previous one"
            fault={faults.get("resume_session")}
            checked={draft.resume_session}
            onChange={(resume_session) => onChange({ resume_session })}
          />
        )}
        <Check label="Enabled" checked={draft.enabled} onChange={(enabled) => onChange({ enabled })} />
      </div>
    </Card>
  );
}

function parseAttended(value: string): boolean | null {
  return value === "null" ? null : value === "true";
}

function Check({
  label,
  checked,
  fault,
  onChange,
}: {
  label: string;
  checked: boolean;
  fault?: string | undefined;
  onChange: (checked: boolean) => void;
}) {
  return (
    <div className={formStyles["field"]}>
      <label className={formStyles["check"]}>
        <input type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} />
        {label}
      </label>
      {fault === undefined ? null : <p className={formStyles["fault"]}>{fault}</p>}
    </div>
  );
}
