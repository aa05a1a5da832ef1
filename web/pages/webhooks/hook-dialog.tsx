import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { Input } from "../../../src/wire/contracts.ts";
import { api } from "../../data/client.ts";
import { getErrorsByField } from "../../data/errors-by-field.ts";
import { type Hook, queries, queryClient } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Field } from "../../parts/field.tsx";
import { JsonField } from "../../parts/schema-form.tsx";
import { toast } from "../../parts/toasts.tsx";
import formStyles from "../../parts/form.module.css";
import styles from "./page.module.css";

type NewHook = Input<"POST /hooks">["body"];

export function HookDialog({
  hook,
  onClose,
  onCreated,
}: {
  hook: Hook | null;
  onClose: () => void;
  onCreated: (created: Pick<Hook, "name" | "scheme"> & { secret: string }) => void;
}) {
  const agents = useQuery(queries.agents()).data ?? [];
  const [name, setName] = useState(hook?.name ?? "");
  const [agent, setAgent] = useState(hook?.agent_name ?? "");
  const [scheme, setScheme] = useState<Hook["scheme"]>(hook?.scheme ?? "drover");
  const [events, setEvents] = useState(hook?.events?.join(", ") ?? "");
  const [prompt, setPrompt] = useState(hook?.prompt ?? "");
  const [parameters, setParameters] = useState<unknown>(
    hook === null || Object.keys(hook.parameters).length === 0 ? undefined : hook.parameters,
  );
  const [only, setOnly] = useState<unknown>(hook?.only ?? undefined);
  const [error, setError] = useState<unknown>(null);
  const faults = getErrorsByField(error);
  const names = [...new Set([...agents.map((candidate) => candidate.name), agent])].filter(Boolean).sort();
  const save = (event: FormEvent): void => {
    event.preventDefault();
    setError(null);
    const eventNames = events.split(",").flatMap((eventName) => eventName.trim() || []);
    const fields = {
      agent_name: agent,
      scheme,
      events: scheme === "github" && eventNames.length > 0 ? eventNames : null,
      prompt: prompt === "" ? null : prompt,
      // Both are free JSON, validated by the coordinator.
      parameters: (parameters ?? {}) as NonNullable<NewHook["parameters"]>,
      only: (only ?? null) as NonNullable<NewHook["only"]> | null,
    };
    const saved = hook === null ? api.hooks.add({ name: name.trim(), ...fields }) : api.hooks.change(hook.name, fields);
    saved.then(async ({ secret, ...created }) => {
      if (secret === undefined) toast(`Saved ${created.name}`);
      else onCreated({ ...created, secret });
      onClose();
      await queryClient.invalidateQueries({ queryKey: ["hooks"] });
    }, setError);
  };
  return (
    <Dialog
      open
      onOpenChange={(open) => open || onClose()}
      title={hook === null ? "New hook" : `Edit ${hook.name}`}
      wide
    >
      <form onSubmit={save} className={formStyles["form"]} noValidate>
        {error === null ? null : <ErrorNote error={error} />}
        <Field label="Name" error={faults.get("name")} help={`Address: ${location.origin}/hooks/${name || "NAME"}`}>
          {(input) => (
            <input
              {...input}
              placeholder="reviews"
              readOnly={hook !== null}
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <Field label="Agent" error={faults.get("agent_name")}>
          {(input) => (
            <select {...input} value={agent} onChange={(event) => setAgent(event.target.value)}>
              <option value="">Choose an agent</option>
              {names.map((agentName) => (
                <option key={agentName}>{agentName}</option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Signature" error={faults.get("scheme")}>
          {(input) => (
            <select {...input} value={scheme} onChange={(event) => setScheme(event.target.value as Hook["scheme"])}>
              <option value="drover">Drover: a signature with a timestamp</option>
              <option value="github">GitHub: X-Hub-Signature-256</option>
            </select>
          )}
        </Field>
        {scheme === "github" ? (
          <Field
            label="GitHub events"
            error={faults.get("events")}
            help="Comma-separated, such as push, pull_request. Leave empty for all except ping."
          >
            {(input) => <input {...input} value={events} onChange={(event) => setEvents(event.target.value)} />}
          </Field>
        ) : null}
        <Field
          label="Prompt"
          error={faults.get("prompt")}
          help="{{/pull_request/title}} inserts the value at that JSON pointer of the body."
        >
          {(input) => (
            <textarea {...input} rows={2} value={prompt} onChange={(event) => setPrompt(event.target.value)} />
          )}
        </Field>
        <details className={styles["advanced"]} open={parameters !== undefined || only !== undefined}>
          <summary>Parameters and filter</summary>
          <div className={formStyles["form"]}>
            <JsonField
              label="Parameters"
              help={
                '{"number": {"from": "/number"}} takes a value from the body; plain text and numbers are used directly.'
              }
              value={parameters}
              onChange={setParameters}
            />
            <JsonField
              label="Only"
              help={'{"/action": ["opened"]}: other requests are accepted but start no run.'}
              value={only}
              onChange={setOnly}
              rows={2}
            />
          </div>
        </details>
        <div className={formStyles["foot"]}>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="primary" type="submit">
            {hook === null ? "Create" : "Save"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
