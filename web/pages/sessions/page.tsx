import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { api } from "../../data/client.ts";
import { queries, queryClient, type Session } from "../../data/queries.ts";
import { useRunnerNames } from "../../data/runner-names.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Command } from "../../parts/command.tsx";
import { Empty, Skeleton } from "../../parts/empty.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Icon } from "../../parts/icon.tsx";
import { shortId } from "../../parts/numbers.ts";
import { Ago } from "../../parts/time.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import tableStyles from "../../parts/table.module.css";
import styles from "./page.module.css";

export function Page() {
  const query = useInfiniteQuery(queries.sessions());
  const all = useMemo(() => (query.data?.pages ?? []).flatMap(({ items }) => items), [query.data]);
  const rows = useMemo(() => treeOf(all), [all]);
  const nameOf = useRunnerNames();
  const remove = (session_id: string): void =>
    void api.sessions.remove(session_id).then(() => {
      toast("Session ended", "Its runs stay.");
      return queryClient.invalidateQueries({ queryKey: ["sessions"] });
    }, toastError);
  return (
    <>
      <h1 style={{ marginBottom: 12 }}>Sessions</h1>
      {query.isError ? <ErrorNote error={query.error} /> : null}
      <Card flush>
        {query.isPending ? (
          <Skeleton />
        ) : rows.length === 0 ? (
          <Empty icon="sessions" title="No sessions yet">
            <p>Every run belongs to one. Start a conversation:</p>
            <Link to="/chat" search={{}}>
              Open the chat
            </Link>
            <Command text="drover sessions list" />
          </Empty>
        ) : (
          <div className={tableStyles["scroll"]} tabIndex={0} role="region" aria-label="Sessions">
            <table className={tableStyles["table"]}>
              <thead>
                <tr>
                  <th>Session</th>
                  <th>Agent</th>
                  <th className={tableStyles["right"]}>Runs</th>
                  <th>Continues</th>
                  <th>By</th>
                  <th className={tableStyles["right"]}>Last used</th>
                  <th>
                    <span className="hidden-visually">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {rows.map(({ session, depth }) => (
                  <tr key={session.session_id}>
                    <td className={styles["id"]} style={{ paddingLeft: 14 + depth * 20 }}>
                      {depth > 0 ? <Icon name="fork" small /> : null}
                      <Link className={tableStyles["link"]} to="/chat" search={{ session: session.session_id }}>
                        <span className="mono">{shortId(session.session_id)}</span>
                      </Link>
                      {session.forked_from && depth === 0 ? (
                        <span className="faint"> fork of {shortId(session.forked_from)}</span>
                      ) : null}
                    </td>
                    <td>{session.agent_name}</td>
                    <td className={tableStyles["right"]}>
                      <Link to="/runs" search={{ session: session.session_id }}>
                        {session.run_count}
                      </Link>
                    </td>
                    <td className="dim">{session.portable ? "on any runner" : `on ${nameOf(session.runner_id)}`}</td>
                    <td className="dim">{session.created_by}</td>
                    <td className={`faint ${tableStyles["right"]}`}>
                      <Ago at={session.last_used_at} />
                    </td>
                    <td className={tableStyles["right"]}>
                      <IconButton
                        icon="trash"
                        label={`End session ${shortId(session.session_id)}`}
                        onClick={() => remove(session.session_id)}
                      />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Card>
      {query.hasNextPage ? (
        <p style={{ marginTop: 12 }}>
          <Button onClick={() => void query.fetchNextPage()}>Show older ones</Button>
        </p>
      ) : null}
    </>
  );
}

/** Forks stand below what they were forked from. */
function treeOf(sessions: readonly Session[]): { session: Session; depth: number }[] {
  const known = new Set(sessions.map(({ session_id }) => session_id));
  const forks = new Map<string, Session[]>();
  for (const session of sessions)
    if (session.forked_from !== null && known.has(session.forked_from))
      forks.set(session.forked_from, [...(forks.get(session.forked_from) ?? []), session]);
  const rows: { session: Session; depth: number }[] = [];
  const add = (session: Session, depth: number): void => {
    rows.push({ session, depth });
    for (const fork of forks.get(session.session_id) ?? []) add(fork, depth + 1);
  };
  for (const session of sessions) if (session.forked_from === null || !known.has(session.forked_from)) add(session, 0);
  return rows;
}
