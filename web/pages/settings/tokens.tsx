import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { tokenRoles } from "../../../src/model/token.ts";
import { api } from "../../data/client.ts";
import { queries, queryClient, type Token } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { NewSecretNote } from "../../parts/new-secret-note.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Age, formatDateTime, useNow } from "../../parts/time.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import formStyles from "../../parts/form.module.css";

export function Tokens({ isAdmin, currentTokenId }: { isAdmin: boolean; currentTokenId: string }) {
  const tokens = useQuery(queries.tokens());
  const [isCreating, setIsCreating] = useState(false);
  const [newToken, setNewToken] = useState<string | null>(null);
  const now = useNow();
  const validTokens = (tokens.data ?? []).filter((token) => isValid(token, now));
  return (
    <Card
      title="Tokens"
      note="and signed-in browsers"
      actions={
        isAdmin ? (
          <Button icon="plus" onClick={() => setIsCreating(true)}>
            New token
          </Button>
        ) : undefined
      }
      flush
    >
      {newToken === null ? null : (
        <NewSecretNote description="The new token." text={newToken} copyLabel="Copy the token" />
      )}
      {tokens.isError ? <ErrorNote error={tokens.error} /> : null}
      {tokens.isPending ? (
        <Skeleton />
      ) : (
        <Table
          label="Tokens"
          columns={buildColumns(currentTokenId)}
          rows={validTokens}
          getKey={({ token_id }) => token_id}
        />
      )}
      {isCreating ? <NewTokenDialog onClose={() => setIsCreating(false)} onCreated={setNewToken} /> : null}
    </Card>
  );
}

const buildColumns = (currentTokenId: string): Column<Token>[] => [
  { head: "Subject", cell: ({ subject }) => subject },
  { head: "Role", tone: "dim", cell: ({ role }) => role },
  { head: "Kind", tone: "dim", cell: ({ token_id, kind }) => (token_id === currentTokenId ? "this browser" : kind) },
  { head: "Label", tone: "dim", title: ({ label }) => label ?? "", cell: ({ label }) => label ?? "—" },
  { head: "Expires", tone: "dim", cell: formatExpiry },
  { head: "Created", right: true, tone: "faint", cell: ({ created_at }) => <Age at={created_at} /> },
  {
    head: "Actions",
    hideHeader: true,
    right: true,
    cell: ({ token_id, subject }) => (
      <Button variant="quiet" aria-label={`Revoke the token of ${subject}`} onClick={() => revoke(token_id)}>
        Revoke
      </Button>
    ),
  },
];

function revoke(token_id: string): void {
  void api.tokens.revoke(token_id).then(() => {
    toast("Token revoked", "Its open connections were closed.");
    return queryClient.invalidateQueries({ queryKey: ["tokens"] });
  }, toastError);
}

function isValid({ revoked_at, expires_at, used_at }: Token, now: number): boolean {
  const hasEnded = [revoked_at, expires_at].some((at) => at !== null && Date.parse(at) <= now);
  return !hasEnded && used_at === null;
}

function formatExpiry({ revoked_at, expires_at }: Token): string {
  const [first] = [revoked_at, expires_at].filter((at) => at !== null).sort();
  return first === undefined ? "never" : formatDateTime(first);
}

function NewTokenDialog({ onClose, onCreated }: { onClose: () => void; onCreated: (text: string) => void }) {
  const [subject, setSubject] = useState("");
  const [role, setRole] = useState<Token["role"]>("user");
  const [label, setLabel] = useState("");
  const [error, setError] = useState<unknown>(null);
  const ids = [useId(), useId(), useId()];
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    api.tokens.create({ subject, role, ...(label === "" ? {} : { label }) }).then(async ({ token }) => {
      onCreated(token);
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
          <p className={formStyles["help"]}>The person or machine that uses the token.</p>
        </div>
        <div className={formStyles["field"]}>
          <label htmlFor={ids[1]}>Role</label>
          <select id={ids[1]} value={role} onChange={(event) => setRole(event.target.value as typeof role)}>
            {tokenRoles.map((tokenRole) => (
              <option key={tokenRole}>{tokenRole}</option>
            ))}
          </select>
        </div>
        <div className={formStyles["field"]}>
          <label htmlFor={ids[2]}>Label</label>
          <input id={ids[2]} value={label} onChange={(event) => setLabel(event.target.value)} />
        </div>
        <div className={formStyles["foot"]}>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="primary" type="submit">
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
