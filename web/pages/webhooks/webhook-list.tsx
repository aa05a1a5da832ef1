import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../data/client.ts";
import { useReadOnlyReason } from "../../data/read-only-reason.ts";
import { queries, queryClient, type Webhook } from "../../data/queries.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Command } from "../../parts/command.tsx";
import { EmptyState } from "../../parts/empty-state.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Menu } from "../../parts/menu.tsx";
import { NewSecretNote } from "../../parts/new-secret-note.tsx";
import { StatusMark } from "../../parts/status.tsx";
import { type Column, Table, tableLink } from "../../parts/table.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import { revealDirectionMarks } from "../../parts/reveal-direction-marks.ts";
import { WebhookDialog } from "./webhook-dialog.tsx";

/** Webhooks: external addresses that are notified about runs. */
export function WebhookList() {
  const query = useQuery(queries.webhooks());
  const readOnlyReason = useReadOnlyReason();
  /** The webhook in the dialog, "new" to create one, null if the dialog is closed. */
  const [editedWebhook, setEditedWebhook] = useState<Webhook | "new" | null>(null);
  const [newSecret, setNewSecret] = useState<{ name: string; secret: string } | null>(null);
  const webhooks = query.data ?? [];
  return (
    <Card
      title="Webhooks out"
      note="addresses notified about runs"
      actions={
        <Button icon="plus" disabledReason={readOnlyReason} onClick={() => setEditedWebhook("new")}>
          New webhook
        </Button>
      }
      flush
    >
      {newSecret === null ? null : (
        <NewSecretNote
          description={`Deliveries to ${newSecret.name} are signed with this secret.`}
          text={newSecret.secret}
        />
      )}
      {query.isError ? <ErrorNote error={query.error} /> : null}
      {query.isPending ? (
        <Skeleton rows={3} />
      ) : webhooks.length > 0 ? (
        <Table
          label="Webhooks out"
          columns={buildColumns(readOnlyReason, setEditedWebhook, setNewSecret)}
          rows={webhooks}
          getKey={({ name }) => name}
        />
      ) : query.isError ? null : (
        <EmptyState icon="webhooks" title="No webhooks yet">
          <p>Post to a chat when a run fails:</p>
          <Command
            text={`drover webhooks add chat https://chat.example/in --event failed \\\n  --payload '{"text": "{{/run/agent_name}} failed: {{/run/error}}"}'`}
          />
        </EmptyState>
      )}
      {editedWebhook === null ? null : (
        <WebhookDialog
          webhook={editedWebhook === "new" ? null : editedWebhook}
          onClose={() => setEditedWebhook(null)}
          onCreated={(name, secret) => setNewSecret({ name, secret })}
        />
      )}
    </Card>
  );
}

const buildColumns = (
  readOnlyReason: string | null,
  edit: (webhook: Webhook) => void,
  show: (newSecret: { name: string; secret: string }) => void,
): Column<Webhook>[] => [
  {
    head: "Webhook",
    cell: ({ name }) => (
      <Link className={tableLink} to="/webhooks" search={{ webhook: name }}>
        {name}
      </Link>
    ),
  },
  { head: "State", cell: ({ enabled }) => <EnabledState enabled={enabled} /> },
  {
    head: "Address",
    mono: true,
    title: ({ url }) => revealDirectionMarks(url),
    cell: ({ url }) => revealDirectionMarks(url),
  },
  { head: "Events", tone: "dim", title: ({ events }) => events.join(", "), cell: ({ events }) => events.join(", ") },
  { head: "Scope", tone: "dim", cell: describeScope },
  { head: "Body", tone: "dim", cell: ({ payload }) => (payload === null ? "default" : "custom") },
  { head: "Owner", tone: "dim", cell: ({ created_by }) => created_by },
  {
    head: "Actions",
    hideHeader: true,
    right: true,
    cell: (webhook) =>
      readOnlyReason === null ? (
        <Menu
          trigger={<IconButton icon="more" label={`Actions for ${webhook.name}`} />}
          entries={[
            { text: "Edit", icon: "edit", onSelect: () => edit(webhook) },
            {
              text: webhook.enabled ? "Disable" : "Enable",
              icon: webhook.enabled ? "wait" : "ok",
              onSelect: () => update(webhook, { enabled: !webhook.enabled }),
            },
            { text: "New secret", icon: "retry", onSelect: () => rotate(webhook, show) },
            { text: "Remove", icon: "trash", onSelect: () => remove(webhook) },
          ]}
        />
      ) : null,
  },
];

export function EnabledState({ enabled }: { enabled: boolean }) {
  return enabled ? (
    <StatusMark icon="ok" tone="ok" status="enabled" label="Enabled" />
  ) : (
    <StatusMark icon="wait" tone="idle" status="disabled" label="Disabled" />
  );
}

function describeScope({ scope, everyones }: Webhook): string {
  if (scope === "named") return "runs that refer to it";
  return everyones ? "everyone's runs" : "its owner's runs";
}

function refresh(): Promise<unknown> {
  return Promise.all(["webhooks", "deliveries"].map((key) => queryClient.invalidateQueries({ queryKey: [key] })));
}

function update({ name }: Webhook, changes: { enabled: boolean }): void {
  void api.webhooks.change(name, changes).then(() => {
    toast(`${changes.enabled ? "Enabled" : "Disabled"} ${name}`);
    return refresh();
  }, toastError);
}

function rotate({ name }: Webhook, show: (newSecret: { name: string; secret: string }) => void): void {
  void api.webhooks
    .change(name, { rotate_secret: true })
    .then(({ secret }) => secret !== undefined && show({ name, secret }), toastError);
}

function remove({ name }: Webhook): void {
  void api.webhooks.remove(name).then(() => {
    toast(`Removed ${name}`, "Its deliveries were removed too.");
    return refresh();
  }, toastError);
}
