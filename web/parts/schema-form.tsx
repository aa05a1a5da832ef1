import { useId, useState } from "react";
import styles from "./form.module.css";

type Schema = Readonly<Record<string, unknown>>;
export type Values = Record<string, unknown>;

interface Props {
  schema: Schema | undefined;
  values: Values;
  onChange: (values: Values) => void;
  /** The coordinator's validation messages, keyed by field. */
  faults?: ReadonlyMap<string, string>;
}

/** A form generated from a JSON Schema. Values without a matching field type are entered as JSON. */
export function SchemaForm({ schema, values, onChange, faults }: Props) {
  const properties = asObject(schema?.["properties"]);
  const required = new Set(Array.isArray(schema?.["required"]) ? schema["required"] : []);
  const names = Object.keys(properties);
  const set = (name: string, value: unknown): void => {
    const { [name]: _, ...rest } = values;
    onChange(value === undefined ? rest : { ...rest, [name]: value });
  };
  if (names.length === 0)
    return (
      <JsonField
        label="Parameters"
        help="This agent declares no parameters. Values you enter are passed on unchanged."
        value={values}
        onChange={(value) => onChange(asObject(value))}
      />
    );
  return (
    <div className={styles["form"]}>
      {names.map((name) => (
        <Field
          key={name}
          name={name}
          schema={asObject(properties[name])}
          required={required.has(name)}
          value={values[name]}
          error={faults?.get(name)}
          onChange={(value) => set(name, value)}
        />
      ))}
    </div>
  );
}

function Field({
  name,
  schema,
  required,
  value,
  error,
  onChange,
}: {
  name: string;
  schema: Schema;
  required: boolean;
  value: unknown;
  error: string | undefined;
  onChange: (value: unknown) => void;
}) {
  const id = useId();
  const title = typeof schema["title"] === "string" ? schema["title"] : name;
  const description = typeof schema["description"] === "string" ? schema["description"] : null;
  const type = Array.isArray(schema["type"])
    ? (schema["type"] as unknown[]).find((candidate) => candidate !== "null")
    : schema["type"];
  const defaultValue = schema["default"];
  const defaultText =
    defaultValue === undefined
      ? ""
      : String(typeof defaultValue === "object" ? JSON.stringify(defaultValue) : defaultValue);
  const commonProps = {
    id,
    "aria-invalid": error ? true : undefined,
    "aria-describedby": description || error ? `${id}-description` : undefined,
  };
  const choices = Array.isArray(schema["enum"]) ? (schema["enum"] as unknown[]) : null;
  if (type === "object" || (type === "array" && !isTextList(schema)))
    return <JsonField label={title} help={description ?? ""} value={value} onChange={onChange} required={required} />;
  return (
    <div className={styles["field"]}>
      {type === "boolean" ? (
        <label className={styles["check"]}>
          <input
            {...commonProps}
            type="checkbox"
            checked={value === undefined ? defaultValue === true : value === true}
            onChange={(event) => onChange(event.target.checked)}
          />
          {title}
        </label>
      ) : (
        <>
          <label htmlFor={id}>
            {title}
            {required ? <span className={styles["required"]}> required</span> : null}
          </label>
          {choices ? (
            <select
              {...commonProps}
              value={value === undefined ? "" : JSON.stringify(value)}
              onChange={(event) => onChange(event.target.value === "" ? undefined : JSON.parse(event.target.value))}
            >
              <option value="">{defaultText ? `${defaultText} (default)` : "none"}</option>
              {choices.map((choice) => (
                <option key={JSON.stringify(choice)} value={JSON.stringify(choice)}>
                  {String(choice)}
                </option>
              ))}
            </select>
          ) : type === "integer" || type === "number" ? (
            <input
              {...commonProps}
              type="number"
              step={type === "integer" ? 1 : "any"}
              placeholder={defaultText}
              value={typeof value === "number" ? value : ""}
              onChange={(event) => onChange(event.target.value === "" ? undefined : event.target.valueAsNumber)}
            />
          ) : type === "array" ? (
            <textarea
              {...commonProps}
              rows={2}
              placeholder="one per line"
              value={Array.isArray(value) ? value.join("\n") : ""}
              onChange={(event) => onChange(event.target.value === "" ? undefined : event.target.value.split("\n"))}
            />
          ) : schema["format"] === "textarea" || Number(schema["maxLength"] ?? 0) > 200 ? (
            <textarea
              {...commonProps}
              rows={4}
              placeholder={defaultText}
              value={typeof value === "string" ? value : ""}
              onChange={(event) => onChange(event.target.value === "" ? undefined : event.target.value)}
            />
          ) : (
            <input
              {...commonProps}
              type="text"
              placeholder={defaultText}
              value={typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value)}
              onChange={(event) => onChange(event.target.value === "" && !required ? undefined : event.target.value)}
            />
          )}
        </>
      )}
      {description || error ? (
        <p id={`${id}-description`} className={error ? styles["fault"] : styles["help"]}>
          {error ?? description}
        </p>
      ) : null}
    </div>
  );
}

export function JsonField({
  label,
  help,
  value,
  onChange,
  required = false,
  rows = 4,
  autoFocus = false,
}: {
  label: string;
  help: string;
  value: unknown;
  onChange: (value: unknown) => void;
  required?: boolean;
  rows?: number;
  autoFocus?: boolean;
}) {
  const id = useId();
  const [text, setText] = useState(() => (value === undefined ? "" : JSON.stringify(value, null, 2)));
  const [error, setError] = useState<string | null>(null);
  const change = (next: string): void => {
    setText(next);
    if (next.trim() === "") {
      setError(null);
      return onChange(undefined);
    }
    try {
      onChange(JSON.parse(next));
      setError(null);
    } catch (cause) {
      setError(cause instanceof Error ? cause.message : String(cause));
    }
  };
  return (
    <div className={styles["field"]}>
      <label htmlFor={id}>
        {label} <span className="faint">JSON</span>
        {required ? <span className={styles["required"]}> required</span> : null}
      </label>
      <textarea
        id={id}
        className="mono"
        rows={rows}
        autoFocus={autoFocus}
        spellCheck={false}
        value={text}
        aria-invalid={error ? true : undefined}
        aria-describedby={`${id}-description`}
        onChange={(event) => change(event.target.value)}
      />
      <p id={`${id}-description`} className={error ? styles["fault"] : styles["help"]}>
        {error ?? help}
      </p>
    </div>
  );
}

function isTextList(schema: Schema): boolean {
  return asObject(schema["items"])["type"] === "string";
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
