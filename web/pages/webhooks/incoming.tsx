import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../data/client.ts";
import { useReadOnlyReason } from "../../data/read-only-reason.ts";
import { type Hook, queries, queryClient } from "../../data/queries.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Command, CopyButton } from "../../parts/command.tsx";
import { Empty, Skeleton } from "../../parts/empty.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Menu } from "../../parts/menu.tsx";
import { SecretOnce } from "../../parts/secret-once.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Ago } from "../../parts/time.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import { HookDialog } from "./hook-dialog.tsx";
import { Switch } from "./outgoing.tsx";
import styles from "./page.module.css";

type Made = Pick<Hook, "name" | "scheme"> & { secret: string };

/** Hooks: addresses on this coordinator that submit a run for each signed request. */
export function Incoming() {
  const query = useQuery(queries.hooks());
  const cannot = useReadOnlyReason();
  /** The hook in the dialog, "new" to create one, null if the dialog is closed. */
  const [edited, setEdited] = useState<Hook | "new" | null>(null);
  const [made, setMade] = useState<Made | null>(null);
  const hooks = query.data ?? [];
  return (
    <Card
      title="Hooks in"
      note="each signed request submits a run"
      actions={
        <Button icon="plus" disabledBecause={cannot} onClick={() => setEdited("new")}>
          New hook
        </Button>
      }
      flush
    >
      {made === null ? null : <HowToSend made={made} />}
      {query.isError ? <ErrorNote error={query.error} /> : null}
      {query.isPending ? (
        <Skeleton rows={3} />
      ) : hooks.length > 0 ? (
        <Table label="Hooks in" columns={columns(cannot, setEdited, setMade)} rows={hooks} keyOf={({ name }) => name} />
      ) : query.isError ? null : (
        <Empty icon="webhooks" title="Nothing from outside starts a run yet">
          <p>Run echo for each signed request, with its message taken from the body:</p>
          <Command text="drover hooks add greetings echo --param message=/text" />
        </Empty>
      )}
      {edited === null ? null : (
        <HookDialog hook={edited === "new" ? null : edited} onClose={() => setEdited(null)} onMade={setMade} />
      )}
    </Card>
  );
}

function HowToSend({ made: { name, scheme, secret } }: { made: Made }) {
  return (
    <SecretOnce what={`Requests to ${addressOf(name)} must be signed with this secret.`} text={secret}>
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
    </SecretOnce>
  );
}

const columns = (cannot: string | null, edit: (hook: Hook) => void, show: (made: Made) => void): Column<Hook>[] => [
  { head: "Hook", cell: ({ name }) => <b>{name}</b> },
  { head: "State", cell: ({ enabled }) => <Switch enabled={enabled} /> },
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
    title: ({ name }) => addressOf(name),
    cell: ({ name }) => (
      <span className={styles["address"]}>
        {`/hooks/${name}`}
        <CopyButton text={addressOf(name)} label={`Copy the address of ${name}`} />
      </span>
    ),
  },
  { head: "Signature", tone: "dim", cell: ({ scheme }) => (scheme === "github" ? "GitHub" : "Drover") },
  {
    head: "Accepts",
    tone: "dim",
    title: (hook) => visibleText(acceptedBy(hook)),
    cell: (hook) => visibleText(acceptedBy(hook)),
  },
  { head: "Owner", tone: "dim", cell: ({ created_by }) => created_by },
  { head: "Changed", right: true, tone: "faint", cell: ({ updated_at }) => <Ago at={updated_at} /> },
  {
    head: "Actions",
    quiet: true,
    right: true,
    cell: (hook) =>
      cannot === null ? (
        <Menu
          trigger={<IconButton icon="more" label={`Actions for ${hook.name}`} />}
          entries={[
            { text: "Edit", icon: "edit", onSelect: () => edit(hook) },
            {
              text: hook.enabled ? "Disable" : "Enable",
              icon: hook.enabled ? "wait" : "ok",
              onSelect: () => enable(hook, !hook.enabled),
            },
            { text: "New secret", icon: "again", onSelect: () => rotate(hook, show) },
            { text: "Remove", icon: "trash", onSelect: () => remove(hook) },
          ]}
        />
      ) : null,
  },
];

function addressOf(name: string): string {
  return `${location.origin}/hooks/${name}`;
}

/** Describes the requests that start a run. */
function acceptedBy({ events, only }: Hook): string {
  const conditions = Object.entries(only ?? {}).map(([pointer, values]) => `${pointer} = ${values.join(" or ")}`);
  return [...(events ?? []), ...conditions].join(", ") || "every request";
}

function refresh(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: ["hooks"] });
}

function enable({ name }: Hook, enabled: boolean): void {
  void api.hooks.change(name, { enabled }).then(() => {
    toast(`${enabled ? "Enabled" : "Disabled"} ${name}`, enabled ? null : "Its requests are refused.");
    return refresh();
  }, toastError);
}

function rotate({ name, scheme }: Hook, show: (made: Made) => void): void {
  void api.hooks
    .change(name, { rotate_secret: true })
    .then(({ secret }) => secret !== undefined && show({ name, scheme, secret }), toastError);
}

function remove({ name }: Hook): void {
  void api.hooks.remove(name).then(() => {
    toast(`Removed ${name}`, "Its requests are refused from now on.");
    return refresh();
  }, toastError);
}
