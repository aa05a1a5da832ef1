import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { api } from "../../data/client.ts";
import { queries, queryClient, type Session } from "../../data/queries.ts";
import { useRunnerNames } from "../../data/runner-names.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Command } from "../../parts/command.tsx";
import { EmptyState } from "../../parts/empty-state.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Icon } from "../../parts/icon.tsx";
import { formatShortId } from "../../parts/numbers.ts";
import { type Column, Table, tableLink } from "../../parts/table.tsx";
import { Age } from "../../parts/time.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import styles from "./page.module.css";

export function Page() {
  const query = useInfiniteQuery(queries.sessions());
  const all = useMemo(() => (query.data?.pages ?? []).flatMap(({ items }) => items), [query.data]);
  const rows = useMemo(() => toTree(all), [all]);
  const getRunnerName = useRunnerNames();

  return (
    <>
      <h1 style={{ marginBottom: 12 }}>Sessions</h1>
      {query.isError ? <ErrorNote error={query.error} /> : null}
      <Card flush>
        {query.isPending ? (
          <Skeleton />
        ) : rows.length === 0 ? (
          <EmptyState icon="sessions" title="No sessions yet">
            <p>Every run belongs to a session. Start a conversation:</p>
            <Link to="/chat" search={{}}>
              Open the chat
            </Link>
            <Command text="drover sessions list" />
          </EmptyState>
        ) : (
          <Table
            label="Sessions"
            columns={buildColumns(getRunnerName)}
            rows={rows}
            getKey={({ session }) => session.session_id}
          />
        )}
      </Card>
      {query.hasNextPage ? (
        <p style={{ marginTop: 12 }}>
          <Button onClick={() => void query.fetchNextPage()}>Show older</Button>
        </p>
      ) : null}
    </>
  );
}

interface Row {
  session: Session;
  depth: number;
}

const buildColumns = (getRunnerName: (runner_id: string | null) => string): Column<Row>[] => [
  { head: "Session", cell: (row) => <SessionLink {...row} /> },
  { head: "Agent", cell: ({ session }) => session.agent_name },
  {
    head: "Runs",
    right: true,
    cell: ({ session }) => (
      <Link to="/runs" search={{ session: session.session_id }}>
        {session.run_count}
      </Link>
    ),
  },
  {
    head: "Continues",
    tone: "dim",
    cell: ({ session }) => (session.portable ? "on any runner" : `on ${getRunnerName(session.runner_id)}`),
  },
  { head: "By", tone: "dim", cell: ({ session }) => session.created_by },
  { head: "Last used", right: true, tone: "faint", cell: ({ session }) => <Age at={session.last_used_at} /> },
  {
    head: "Actions",
    hideHeader: true,
    right: true,
    cell: ({ session: { session_id } }) => (
      <IconButton
        icon="trash"
        label={`Delete session ${formatShortId(session_id)}`}
        onClick={() => deleteSession(session_id)}
      />
    ),
  },
];

function deleteSession(session_id: string): void {
  void api.sessions.remove(session_id).then(() => {
    toast("Session deleted", "Its runs are kept.");
    return queryClient.invalidateQueries({ queryKey: ["sessions"] });
  }, toastError);
}

function SessionLink({ session: { session_id, forked_from, fork_at_turn }, depth }: Row) {
  return (
    <span className={styles["id"]} style={{ paddingLeft: depth * 20 }}>
      {depth > 0 ? <Icon name="fork" small /> : null}
      <Link className={tableLink} to="/chat" search={{ session: session_id }}>
        <span className="mono">{formatShortId(session_id)}</span>
      </Link>
      {forked_from === null ? null : (
        <span className="faint">
          {depth === 0 ? ` fork of ${formatShortId(forked_from)}` : ""}
          {fork_at_turn === null ? "" : ` after turn ${fork_at_turn}`}
        </span>
      )}
    </span>
  );
}

/** Puts forks below the session they were forked from. */
function toTree(sessions: readonly Session[]): Row[] {
  const listedIds = new Set(sessions.map(({ session_id }) => session_id));
  const forks = new Map<string, Session[]>();
  for (const session of sessions)
    if (session.forked_from !== null && listedIds.has(session.forked_from))
      forks.set(session.forked_from, [...(forks.get(session.forked_from) ?? []), session]);
  const rows: Row[] = [];
  const add = (session: Session, depth: number): void => {
    rows.push({ session, depth });
    for (const fork of forks.get(session.session_id) ?? []) add(fork, depth + 1);
  };
  for (const session of sessions)
    if (session.forked_from === null || !listedIds.has(session.forked_from)) add(session, 0);
  return rows;
}
