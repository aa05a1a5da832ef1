import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { tokenRoles } from "../../../src/model/token.ts";
import { api } from "../../data/client.ts";
import { queries, queryClient, type Token } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Command } from "../../parts/command.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Skeleton } from "../../parts/empty.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Ago, exact, useNow } from "../../parts/time.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import formStyles from "../../parts/form.module.css";
import tableStyles from "../../parts/table.module.css";
import styles from "./page.module.css";

export function Tokens({ admin, own }: { admin: boolean; own: string }) {
  const tokens = useQuery(queries.tokens());
  const [creating, setCreating] = useState(false);
  const [made, setMade] = useState<string | null>(null);
  const now = useNow();
  const good = (tokens.data ?? []).filter((token) => isGood(token, now));
  const revoke = (token_id: string): void =>
    void api.tokens.revoke(token_id).then(() => {
      toast("Revoked", "Whatever was open with it has ended.");
      return queryClient.invalidateQueries({ queryKey: ["tokens"] });
    }, toastError);
  return (
    <Card
      title="Tokens"
      note="and browsers that are signed in"
      actions={
        admin ? (
          <Button icon="plus" onClick={() => setCreating(true)}>
            New token
          </Button>
        ) : undefined
      }
      flush
    >
      {made === null ? null : (
        <div className={styles["made"]}>
          <p>This is the only time it is shown:</p>
          <Command text={made} label="Copy the token" />
        </div>
      )}
      {tokens.isError ? <ErrorNote error={tokens.error} /> : null}
      {tokens.isPending ? (
        <Skeleton />
      ) : (
        <div className={tableStyles["scroll"]} tabIndex={0} role="region" aria-label="Tokens">
          <table className={tableStyles["table"]}>
            <thead>
              <tr>
                <th>Subject</th>
                <th>Role</th>
                <th>Kind</th>
                <th>Label</th>
                <th>Ends</th>
                <th className={tableStyles["right"]}>Created</th>
                <th>
                  <span className="hidden-visually">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {good.map((token) => (
                <tr key={token.token_id}>
                  <td>{token.subject}</td>
                  <td className="dim">{token.role}</td>
                  <td className="dim">{token.token_id === own ? "this browser" : token.kind}</td>
                  <td className={`dim ${tableStyles["wide"]}`}>{token.label ?? "—"}</td>
                  <td className="dim">{endOf(token)}</td>
                  <td className={`faint ${tableStyles["right"]}`}>
                    <Ago at={token.created_at} />
                  </td>
                  <td className={tableStyles["right"]}>
                    <Button
                      look="quiet"
                      aria-label={`Revoke the token of ${token.subject}`}
                      onClick={() => revoke(token.token_id)}
                    >
                      Revoke
                    </Button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {creating ? <NewToken onClose={() => setCreating(false)} onMade={setMade} /> : null}
    </Card>
  );
}

function isGood({ revoked_at, expires_at, used_at }: Token, now: number): boolean {
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
