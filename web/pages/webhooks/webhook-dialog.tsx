import { type FormEvent, useState } from "react";
import { type WebhookEvent, webhookEvents } from "../../../src/model/webhook-events.ts";
import { api } from "../../data/client.ts";
import { getErrorsByField } from "../../data/errors-by-field.ts";
import { queryClient, type Webhook } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Field } from "../../parts/field.tsx";
import { JsonField } from "../../parts/schema-form.tsx";
import { toast } from "../../parts/toasts.tsx";
import formStyles from "../../parts/form.module.css";
import styles from "./page.module.css";

export function WebhookDialog({
  webhook,
  onClose,
  onCreated,
}: {
  webhook: Webhook | null;
  onClose: () => void;
  onCreated: (name: string, secret: string) => void;
}) {
  const [name, setName] = useState(webhook?.name ?? "");
  const [url, setUrl] = useState(webhook?.url ?? "");
  const [events, setEvents] = useState<readonly WebhookEvent[]>(webhook?.events ?? ["completed", "failed"]);
  const [scope, setScope] = useState<Webhook["scope"]>(webhook?.scope ?? "all");
  const [payload, setPayload] = useState<unknown>(webhook?.payload ?? undefined);
  const [error, setError] = useState<unknown>(null);
  const faults = getErrorsByField(error);
  const save = (event: FormEvent): void => {
    event.preventDefault();
    setError(null);
    const fields = { url: url.trim(), events: [...events], scope };
    const saved =
      webhook === null
        ? api.webhooks.add({ name: name.trim(), ...fields, ...(payload === undefined ? {} : { payload }) })
        : api.webhooks.change(webhook.name, { ...fields, payload: payload ?? null });
    saved.then(async (created) => {
      if (created.secret === undefined) toast(`Saved ${created.name}`);
      else onCreated(created.name, created.secret);
      onClose();
      await queryClient.invalidateQueries({ queryKey: ["webhooks"] });
    }, setError);
  };
  return (
    <Dialog
      open
      onOpenChange={(open) => open || onClose()}
      title={webhook === null ? "New webhook" : `Edit ${webhook.name}`}
      wide
    >
      <form onSubmit={save} className={formStyles["form"]} noValidate>
        {error === null ? null : <ErrorNote error={error} />}
        <Field label="Name" error={faults.get("name")} help="Agents and runs refer to the webhook by this name.">
          {(input) => (
            <input
              {...input}
              placeholder="chat"
              readOnly={webhook !== null}
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <Field
          label="Address"
          error={faults.get("url")}
          help="A public address. Other addresses must be listed under webhooks.allow in drover.yaml."
        >
          {(input) => (
            <input
              {...input}
              type="url"
              placeholder="https://chat.example/in"
              spellCheck={false}
              value={url}
              onChange={(event) => setUrl(event.target.value)}
            />
          )}
        </Field>
        <fieldset className={styles["choices"]}>
          <legend>Events</legend>
          {webhookEvents.map((eventName) => (
            <label key={eventName} className={formStyles["check"]}>
              <input
                type="checkbox"
                checked={events.includes(eventName)}
                onChange={() =>
                  setEvents(
                    webhookEvents.filter((candidate) => (candidate === eventName) !== events.includes(candidate)),
                  )
                }
              />
              {eventName}
            </label>
          ))}
          {faults.has("events") ? <p className={formStyles["fault"]}>{faults.get("events")}</p> : null}
        </fieldset>
        <Field label="Runs" error={faults.get("scope")}>
          {(input) => (
            <select {...input} value={scope} onChange={(event) => setScope(event.target.value as Webhook["scope"])}>
              <option value="all">all runs its owner can see</option>
              <option value="named">only runs whose agent or request refers to it</option>
            </select>
          )}
        </Field>
        <JsonField
          label="Body"
          help={
            "Leave empty for the default body, or write JSON in which {{/run/error}} inserts a value of the default body."
          }
          value={payload}
          onChange={setPayload}
        />
        <div className={formStyles["foot"]}>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="primary" type="submit">
            {webhook === null ? "Create" : "Save"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
