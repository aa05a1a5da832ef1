import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../data/client.ts";
import { useReadOnlyReason } from "../../data/read-only-reason.ts";
import { queries, queryClient, type Webhook } from "../../data/queries.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Command } from "../../parts/command.tsx";
import { Empty, Skeleton } from "../../parts/empty.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Menu } from "../../parts/menu.tsx";
import { SecretOnce } from "../../parts/secret-once.tsx";
import { Mark } from "../../parts/status.tsx";
import { type Column, Table, tableLink } from "../../parts/table.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import { WebhookDialog } from "./webhook-dialog.tsx";

/** Webhooks: external addresses that are notified about runs. */
export function Outgoing() {
  const query = useQuery(queries.webhooks());
  const cannot = useReadOnlyReason();
  /** The webhook in the dialog, "new" to create one, null if the dialog is closed. */
  const [edited, setEdited] = useState<Webhook | "new" | null>(null);
  const [made, setMade] = useState<{ name: string; secret: string } | null>(null);
  const webhooks = query.data ?? [];
  return (
    <Card
      title="Webhooks out"
      note="addresses notified about runs"
      actions={
        <Button icon="plus" disabledBecause={cannot} onClick={() => setEdited("new")}>
          New webhook
        </Button>
      }
      flush
    >
      {made === null ? null : (
        <SecretOnce what={`Deliveries to ${made.name} are signed with this secret.`} text={made.secret} />
      )}
      {query.isError ? <ErrorNote error={query.error} /> : null}
      {query.isPending ? (
        <Skeleton rows={3} />
      ) : webhooks.length > 0 ? (
        <Table
          label="Webhooks out"
          columns={columns(cannot, setEdited, setMade)}
          rows={webhooks}
          keyOf={({ name }) => name}
        />
      ) : query.isError ? null : (
        <Empty icon="webhooks" title="Nobody is notified yet">
          <p>Post to a chat when a run fails:</p>
          <Command
            text={`drover webhooks add chat https://chat.example/in --event failed \\\n  --payload '{"text": "{{/run/agent_name}} failed: {{/run/error}}"}'`}
          />
        </Empty>
      )}
      {edited === null ? null : (
        <WebhookDialog
          webhook={edited === "new" ? null : edited}
          onClose={() => setEdited(null)}
          onMade={(name, secret) => setMade({ name, secret })}
        />
      )}
    </Card>
  );
}

const columns = (
  cannot: string | null,
  edit: (webhook: Webhook) => void,
  show: (made: { name: string; secret: string }) => void,
): Column<Webhook>[] => [
  {
    head: "Webhook",
    cell: ({ name }) => (
      <Link className={tableLink} to="/webhooks" search={{ webhook: name }}>
        {name}
      </Link>
    ),
  },
  { head: "State", cell: ({ enabled }) => <Switch enabled={enabled} /> },
  { head: "Address", mono: true, title: ({ url }) => visibleText(url), cell: ({ url }) => visibleText(url) },
  { head: "Events", tone: "dim", title: ({ events }) => events.join(", "), cell: ({ events }) => events.join(", ") },
  { head: "Scope", tone: "dim", cell: scopeOf },
  { head: "Body", tone: "dim", cell: ({ payload }) => (payload === null ? "default" : "custom") },
  { head: "Owner", tone: "dim", cell: ({ created_by }) => created_by },
  {
    head: "Actions",
    quiet: true,
    right: true,
    cell: (webhook) =>
      cannot === null ? (
        <Menu
          trigger={<IconButton icon="more" label={`Actions for ${webhook.name}`} />}
          entries={[
            { text: "Edit", icon: "edit", onSelect: () => edit(webhook) },
            {
              text: webhook.enabled ? "Disable" : "Enable",
              icon: webhook.enabled ? "wait" : "ok",
              onSelect: () => change(webhook, { enabled: !webhook.enabled }),
            },
            { text: "New secret", icon: "again", onSelect: () => rotate(webhook, show) },
            { text: "Remove", icon: "trash", onSelect: () => remove(webhook) },
          ]}
        />
      ) : null,
  },
];

export function Switch({ enabled }: { enabled: boolean }) {
  return enabled ? (
    <Mark icon="ok" tone="ok" status="enabled" word="Enabled" />
  ) : (
    <Mark icon="wait" tone="idle" status="disabled" word="Disabled" />
  );
}

function scopeOf({ scope, everyones }: Webhook): string {
  if (scope === "named") return "runs that name it";
  return everyones ? "everyone's runs" : "its owner's runs";
}

function refresh(): Promise<unknown> {
  return Promise.all(["webhooks", "deliveries"].map((key) => queryClient.invalidateQueries({ queryKey: [key] })));
}

function change({ name }: Webhook, changes: { enabled: boolean }): void {
  void api.webhooks.change(name, changes).then(() => {
    toast(`${changes.enabled ? "Enabled" : "Disabled"} ${name}`);
    return refresh();
  }, toastError);
}

function rotate({ name }: Webhook, show: (made: { name: string; secret: string }) => void): void {
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
