import { type FormEvent, useState } from "react";
import type { Input } from "../../../src/wire/contracts.ts";
import { api } from "../../data/client.ts";
import { type Agent, queryClient } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Field } from "../../parts/field.tsx";
import { JsonField, SchemaForm, type Values } from "../../parts/schema-form.tsx";
import { toast } from "../../parts/toasts.tsx";
import formStyles from "../../parts/form.module.css";
import styles from "./page.module.css";

type Definition = Input<"PUT /agents/{name}">["body"];

const exampleSchema = {
  type: "object",
  properties: { message: { type: "string", description: "What to say" } },
  required: ["message"],
};

/** Calls `onDone` with the agent's name after saving, or with null on cancel. */
export function Editor({ agent, onDone }: { agent: Agent | null; onDone: (name: string | null) => void }) {
  const [name, setName] = useState(agent?.name ?? "");
  const [type, setType] = useState<"procedural" | "autonomous">(agent?.type ?? "procedural");
  const [command, setCommand] = useState(agent?.command ?? "");
  const [description, setDescription] = useState(agent?.description ?? "");
  const [prompt, setPrompt] = useState(typeof agent?.system_prompt === "string" ? agent.system_prompt : "");
  const [model, setModel] = useState(agent?.model ?? "");
  const [provider, setProvider] = useState(agent?.provider ?? "");
  const [timeout, setTimeout] = useState(agent?.timeout_seconds === undefined ? "" : String(agent.timeout_seconds));
  const [schema, setSchema] = useState<Record<string, unknown> | undefined>(
    agent ? agent.parameters_schema : exampleSchema,
  );
  const [otherValues, setOtherValues] = useState<unknown>(() => getOtherFields(agent));
  const [preview, setPreview] = useState<Values>({});
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const save = (event: FormEvent): void => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    const definition = {
      ...(otherValues as Partial<Definition>),
      type,
      description: description || null,
      command: type === "procedural" ? command : null,
      ...(type === "autonomous" && prompt !== "" ? { system_prompt: prompt } : {}),
      ...(type === "autonomous" && model !== "" ? { model } : {}),
      ...(type === "autonomous" && provider !== "" ? { provider } : {}),
      ...(timeout === "" ? {} : { timeout_seconds: Number(timeout) }),
      ...(schema === undefined ? {} : { parameters_schema: schema }),
    } satisfies Definition;
    api.agents
      .put(name.trim(), definition)
      .then(async () => {
        await queryClient.invalidateQueries({ queryKey: ["agents"] });
        toast(`Saved ${name.trim()}`);
        onDone(name.trim());
      })
      .catch(setError)
      .finally(() => setBusy(false));
  };
  return (
    <form onSubmit={save} noValidate>
      {error === null ? null : <ErrorNote error={error} />}
      <div className={styles["panes"]}>
        <Card title="Definition">
          <div className={formStyles["form"]}>
            <Field label="Name" help="Letters, digits, dots and dashes. Commands and the HTTP API use this name.">
              {({ id }) => (
                <input
                  id={id}
                  value={name}
                  readOnly={agent !== null}
                  required
                  onChange={(event) => setName(event.target.value)}
                />
              )}
            </Field>
            <Field
              label="Type"
              help={
                type === "procedural" ? "Runs a command with parameters." : "Works on its own with a model and tools."
              }
            >
              {({ id }) => (
                <select id={id} value={type} onChange={(event) => setType(event.target.value as typeof type)}>
                  <option value="procedural">procedural</option>
                  <option value="autonomous">autonomous</option>
                </select>
              )}
            </Field>
            {type === "procedural" ? (
              <Field label="Command" help="CLI command to execute (e.g., python -m crawler.main)">
                {({ id }) => (
                  <input
                    id={id}
                    className="mono"
                    value={command}
                    spellCheck={false}
                    onChange={(event) => setCommand(event.target.value)}
                  />
                )}
              </Field>
            ) : (
              <>
                <Field label="System prompt" help="Tells the model its role and how to work.">
                  {({ id }) => (
                    <textarea id={id} rows={6} value={prompt} onChange={(event) => setPrompt(event.target.value)} />
                  )}
                </Field>
                <Field label="Provider" help="Leave empty for the first configured provider.">
                  {({ id }) => <input id={id} value={provider} onChange={(event) => setProvider(event.target.value)} />}
                </Field>
                <Field label="Model" help="Leave empty for the provider's default.">
                  {({ id }) => <input id={id} value={model} onChange={(event) => setModel(event.target.value)} />}
                </Field>
              </>
            )}
            <Field label="Description" help="One line that helps people choose this agent.">
              {({ id }) => (
                <input id={id} value={description} onChange={(event) => setDescription(event.target.value)} />
              )}
            </Field>
            <Field label="Timeout in seconds" help="Leave empty for the runner's default.">
              {({ id }) => (
                <input
                  id={id}
                  type="number"
                  min={1}
                  value={timeout}
                  onChange={(event) => setTimeout(event.target.value)}
                />
              )}
            </Field>
            <details className={styles["advanced"]}>
              <summary>Advanced</summary>
              <JsonField
                label="Other fields"
                help="Limits, budget, demands, tags, permissions and any other fields of an agent file."
                value={otherValues}
                onChange={setOtherValues}
                rows={8}
              />
            </details>
          </div>
        </Card>
        <div className="stack">
          <Card title="Parameters" note="a JSON Schema">
            <JsonField
              label="Schema"
              help="Leave empty to accept any parameters."
              value={schema}
              onChange={(value) => setSchema(value as typeof schema)}
              rows={14}
            />
          </Card>
          <Card title="Form preview" note="live">
            <SchemaForm schema={schema} values={preview} onChange={setPreview} />
          </Card>
        </div>
      </div>
      <div className={formStyles["foot"]}>
        <Button onClick={() => onDone(null)}>Cancel</Button>
        <Button variant="primary" type="submit" disabled={busy}>
          Save
        </Button>
      </div>
    </form>
  );
}

/** The agent's fields that have no separate input in this form. */
function getOtherFields(agent: Agent | null): Record<string, unknown> | undefined {
  if (agent === null) return undefined;
  const editedFields = [
    "name",
    "type",
    "command",
    "description",
    "model",
    "provider",
    "timeout_seconds",
    "parameters_schema",
  ];
  const hiddenFields = [
    "source",
    "runner_id",
    "fault",
    ...(typeof agent.system_prompt === "string" ? ["system_prompt"] : []),
  ];
  return Object.fromEntries(
    Object.entries(agent).filter(([key, value]) => ![...editedFields, ...hiddenFields].includes(key) && value !== null),
  );
}
