import { useId } from "react";
import { Field } from "../../parts/field.tsx";
import { type Draft, presets } from "./draft.ts";
import formStyles from "../../parts/form.module.css";
import styles from "./page.module.css";

export function TimingFields({
  draft,
  faults,
  onChange,
}: {
  draft: Draft;
  faults: ReadonlyMap<string, string>;
  onChange: (change: Partial<Draft>) => void;
}) {
  const zoneListId = useId();
  return (
    <>
      <fieldset className={styles["kinds"]}>
        <legend>Repeats</legend>
        {(["cron", "every"] as const).map((kind) => (
          <label key={kind} className={formStyles["check"]}>
            <input type="radio" name="kind" checked={draft.kind === kind} onChange={() => onChange({ kind })} />
            {kind === "cron" ? "at times (cron)" : "at an interval"}
          </label>
        ))}
      </fieldset>
      {draft.kind === "cron" ? (
        <div>
          <Field label="Cron" error={faults.get("cron")} help="Minute, hour, day of month, month, weekday.">
            {(input) => (
              <input
                {...input}
                className="mono"
                spellCheck={false}
                value={draft.cron}
                onChange={(event) => onChange({ cron: event.target.value })}
              />
            )}
          </Field>
          <div className={styles["presets"]} role="group" aria-label="Common times">
            {presets.map(({ label, cron }) => (
              <button key={cron} type="button" aria-pressed={draft.cron === cron} onClick={() => onChange({ cron })}>
                {label}
              </button>
            ))}
          </div>
        </div>
      ) : (
        <Field
          label="Every"
          error={faults.get("every")}
          help="A number with s, m, h or d, such as 15m; at least 10s. Intervals start when you save."
        >
          {(input) => (
            <input
              {...input}
              className="mono"
              spellCheck={false}
              value={draft.every}
              onChange={(event) => onChange({ every: event.target.value })}
            />
          )}
        </Field>
      )}
      <Field
        label="Timezone"
        error={faults.get("timezone")}
        help={
          draft.kind === "cron"
            ? "An IANA name, such as Europe/Berlin or UTC."
            : "Only for displaying times: intervals ignore daylight saving."
        }
      >
        {(input) => (
          <>
            <input
              {...input}
              list={zoneListId}
              spellCheck={false}
              value={draft.timezone}
              onChange={(event) => onChange({ timezone: event.target.value })}
            />
            <datalist id={zoneListId}>
              {["UTC", ...Intl.supportedValuesOf("timeZone")].map((zone) => (
                <option key={zone} value={zone} />
              ))}
            </datalist>
          </>
        )}
      </Field>
    </>
  );
}
