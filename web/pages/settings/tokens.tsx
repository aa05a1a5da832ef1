import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { tokenRoles } from "../../../src/model/token.ts";
import { api } from "../../data/client.ts";
import { queries, queryClient, type Token } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Skeleton } from "../../parts/empty.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { SecretOnce } from "../../parts/secret-once.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Ago, exact, useNow } from "../../parts/time.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import formStyles from "../../parts/form.module.css";

export function Tokens({ admin, own }: { admin: boolean; own: string }) {
  const tokens = useQuery(queries.tokens());
  const [creating, setCreating] = useState(false);
  const [made, setMade] = useState<string | null>(null);
  const now = useNow();
  const valid = (tokens.data ?? []).filter((token) => isValid(token, now));
  return (
    <Card
      title="Tokens"
      note="and signed-in browsers"
      actions={
        admin ? (
          <Button icon="plus" onClick={() => setCreating(true)}>
            New token
          </Button>
        ) : undefined
      }
      flush
    >
      {made === null ? null : <SecretOnce what="The new token." text={made} copy="Copy the token" />}
      {tokens.isError ? <ErrorNote error={tokens.error} /> : null}
      {tokens.isPending ? (
        <Skeleton />
      ) : (
        <Table label="Tokens" columns={columnsFor(own)} rows={valid} keyOf={({ token_id }) => token_id} />
      )}
      {creating ? <NewToken onClose={() => setCreating(false)} onMade={setMade} /> : null}
    </Card>
  );
}

const columnsFor = (own: string): Column<Token>[] => [
  { head: "Subject", cell: ({ subject }) => subject },
  { head: "Role", tone: "dim", cell: ({ role }) => role },
  { head: "Kind", tone: "dim", cell: ({ token_id, kind }) => (token_id === own ? "this browser" : kind) },
  { head: "Label", tone: "dim", title: ({ label }) => label ?? "", cell: ({ label }) => label ?? "—" },
  { head: "Expires", tone: "dim", cell: endOf },
  { head: "Created", right: true, tone: "faint", cell: ({ created_at }) => <Ago at={created_at} /> },
  {
    head: "Actions",
    quiet: true,
    right: true,
    cell: ({ token_id, subject }) => (
      <Button look="quiet" aria-label={`Revoke the token of ${subject}`} onClick={() => revoke(token_id)}>
        Revoke
      </Button>
    ),
  },
];

function revoke(token_id: string): void {
  void api.tokens.revoke(token_id).then(() => {
    toast("Revoked", "Its open connections were closed.");
    return queryClient.invalidateQueries({ queryKey: ["tokens"] });
  }, toastError);
}

function isValid({ revoked_at, expires_at, used_at }: Token, now: number): boolean {
  const ended = [revoked_at, expires_at].some((at) => at !== null && Date.parse(at) <= now);
  return !ended && used_at === null;
}

function endOf({ revoked_at, expires_at }: Token): string {
  const [first] = [revoked_at, expires_at].filter((at) => at !== null).sort();
  return first === undefined ? "never" : exact(first);
}

function NewToken({ onClose, onMade }: { onClose: () => void; onMade: (text: string) => void }) {
  const [subject, setSubject] = useState("");
  const [role, setRole] = useState<Token["role"]>("user");
  const [label, setLabel] = useState("");
  const [error, setError] = useState<unknown>(null);
  const ids = [useId(), useId(), useId()];
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    api.tokens.create({ subject, role, ...(label === "" ? {} : { label }) }).then(async ({ token }) => {
      onMade(token);
      onClose();
      await queryClient.invalidateQueries({ queryKey: ["tokens"] });
    }, setError);
  };
  return (
    <Dialog open onOpenChange={(open) => open || onClose()} title="New token">
      <form onSubmit={submit} className={formStyles["form"]} noValidate>
        {error === null ? null : <ErrorNote error={error} />}
        <div className={formStyles["field"]}>
          <label htmlFor={ids[0]}>Subject</label>
          <input id={ids[0]} value={subject} onChange={(event) => setSubject(event.target.value)} />
          <p className={formStyles["help"]}>The person or machine it is for.</p>
        </div>
        <div className={formStyles["field"]}>
          <label htmlFor={ids[1]}>Role</label>
          <select id={ids[1]} value={role} onChange={(event) => setRole(event.target.value as typeof role)}>
            {tokenRoles.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </div>
        <div className={formStyles["field"]}>
          <label htmlFor={ids[2]}>Label</label>
          <input id={ids[2]} value={label} onChange={(event) => setLabel(event.target.value)} />
        </div>
        <div className={formStyles["foot"]}>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit">
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
