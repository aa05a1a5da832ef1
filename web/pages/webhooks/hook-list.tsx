import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../data/client.ts";
import { useReadOnlyReason } from "../../data/read-only-reason.ts";
import { type Hook, queries, queryClient } from "../../data/queries.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Command, CopyButton } from "../../parts/command.tsx";
import { EmptyState } from "../../parts/empty-state.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Menu } from "../../parts/menu.tsx";
import { NewSecretNote } from "../../parts/new-secret-note.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Age } from "../../parts/time.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import { revealDirectionMarks } from "../../parts/reveal-direction-marks.ts";
import { HookDialog } from "./hook-dialog.tsx";
import { EnabledState } from "./webhook-list.tsx";
import styles from "./page.module.css";

type NewSecret = Pick<Hook, "name" | "scheme"> & { secret: string };

/** Hooks: addresses on this coordinator that submit a run for each signed request. */
export function HookList() {
  const query = useQuery(queries.hooks());
  const readOnlyReason = useReadOnlyReason();
  /** The hook in the dialog, "new" to create one, null if the dialog is closed. */
  const [editedHook, setEditedHook] = useState<Hook | "new" | null>(null);
  const [newSecret, setNewSecret] = useState<NewSecret | null>(null);
  const hooks = query.data ?? [];
  return (
    <Card
      title="Hooks in"
      note="each signed request submits a run"
      actions={
        <Button icon="plus" disabledReason={readOnlyReason} onClick={() => setEditedHook("new")}>
          New hook
        </Button>
      }
      flush
    >
      {newSecret === null ? null : <HowToSend newSecret={newSecret} />}
      {query.isError ? <ErrorNote error={query.error} /> : null}
      {query.isPending ? (
        <Skeleton rows={3} />
      ) : hooks.length > 0 ? (
        <Table
          label="Hooks in"
          columns={buildColumns(readOnlyReason, setEditedHook, setNewSecret)}
          rows={hooks}
          getKey={({ name }) => name}
        />
      ) : query.isError ? null : (
        <EmptyState icon="webhooks" title="No hooks yet">
          <p>Run echo for each signed request, with its message taken from the body:</p>
          <Command text="drover hooks add greetings echo --param message=/text" />
        </EmptyState>
      )}
      {editedHook === null ? null : (
        <HookDialog
          hook={editedHook === "new" ? null : editedHook}
          onClose={() => setEditedHook(null)}
          onCreated={setNewSecret}
        />
      )}
    </Card>
  );
}

function HowToSend({ newSecret: { name, scheme, secret } }: { newSecret: NewSecret }) {
  return (
    <NewSecretNote description={`Requests to ${getHookUrl(name)} must be signed with this secret.`} text={secret}>
      {scheme === "github" ? (
        <p className="dim">
          On GitHub, under Settings, Webhooks, set the payload URL to the address above and the content type to
          application/json.
        </p>
      ) : (
        <p className="dim">
          The header <code>Drover-Signature: t=SECONDS,v1=HEX</code> contains the HMAC-SHA256 of the timestamp, a dot
          and the body.
        </p>
      )}
    </NewSecretNote>
  );
}

const buildColumns = (
  readOnlyReason: string | null,
  edit: (hook: Hook) => void,
  show: (newSecret: NewSecret) => void,
): Column<Hook>[] => [
  { head: "Hook", cell: ({ name }) => <b>{name}</b> },
  { head: "State", cell: ({ enabled }) => <EnabledState enabled={enabled} /> },
  {
    head: "Agent",
    title: ({ agent_name }) => agent_name,
    cell: ({ agent_name }) => (
      <Link to="/agents/$name" params={{ name: agent_name }}>
        {agent_name}
      </Link>
    ),
  },
  {
    head: "Address",
    mono: true,
    title: ({ name }) => getHookUrl(name),
    cell: ({ name }) => (
      <span className={styles["address"]}>
        {`/hooks/${name}`}
        <CopyButton text={getHookUrl(name)} label={`Copy the address of ${name}`} />
      </span>
    ),
  },
  { head: "Signature", tone: "dim", cell: ({ scheme }) => (scheme === "github" ? "GitHub" : "Drover") },
  {
    head: "Accepts",
    tone: "dim",
    title: (hook) => revealDirectionMarks(describeAccepted(hook)),
    cell: (hook) => revealDirectionMarks(describeAccepted(hook)),
  },
  { head: "Owner", tone: "dim", cell: ({ created_by }) => created_by },
  { head: "Changed", right: true, tone: "faint", cell: ({ updated_at }) => <Age at={updated_at} /> },
  {
    head: "Actions",
    hideHeader: true,
    right: true,
    cell: (hook) =>
      readOnlyReason === null ? (
        <Menu
          trigger={<IconButton icon="more" label={`Actions for ${hook.name}`} />}
          entries={[
            { text: "Edit", icon: "edit", onSelect: () => edit(hook) },
            {
              text: hook.enabled ? "Disable" : "Enable",
              icon: hook.enabled ? "wait" : "ok",
              onSelect: () => setEnabled(hook, !hook.enabled),
            },
            { text: "New secret", icon: "retry", onSelect: () => rotate(hook, show) },
            { text: "Remove", icon: "trash", onSelect: () => remove(hook) },
          ]}
        />
      ) : null,
  },
];

function getHookUrl(name: string): string {
  return `${location.origin}/hooks/${name}`;
}

/** Describes the requests that start a run. */
function describeAccepted({ events, only }: Hook): string {
  const conditions = Object.entries(only ?? {}).map(([pointer, values]) => `${pointer} = ${values.join(" or ")}`);
  return [...(events ?? []), ...conditions].join(", ") || "every request";
}

function refresh(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: ["hooks"] });
}

function setEnabled({ name }: Hook, enabled: boolean): void {
  void api.hooks.change(name, { enabled }).then(() => {
    toast(`${enabled ? "Enabled" : "Disabled"} ${name}`, enabled ? null : "Drover now rejects requests to it.");
    return refresh();
  }, toastError);
}

function rotate({ name, scheme }: Hook, show: (newSecret: NewSecret) => void): void {
  void api.hooks
    .change(name, { rotate_secret: true })
    .then(({ secret }) => secret !== undefined && show({ name, scheme, secret }), toastError);
}

function remove({ name }: Hook): void {
  void api.hooks.remove(name).then(() => {
    toast(`Removed ${name}`, "Drover now rejects requests to it.");
    return refresh();
  }, toastError);
}
