import { useQuery } from "@tanstack/react-query";
import { api } from "../../data/client.ts";
import { queries, queryClient, type Runner } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Command } from "../../parts/command.tsx";
import { EmptyState } from "../../parts/empty-state.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Heartbeat, RunnerState, Slots } from "../../parts/runner.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Age } from "../../parts/time.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";

export function Page() {
  const runners = useQuery(queries.runners());
  const me = useQuery(queries.me());
  return (
    <>
      <h1 style={{ marginBottom: 12 }}>Runners</h1>
      {runners.isError ? <ErrorNote error={runners.error} /> : null}
      <Card flush>
        {runners.isPending ? (
          <Skeleton />
        ) : runners.data?.length === 0 ? (
          <EmptyState icon="runners" title="No runner is registered">
            <p>Start a runner here with every profile that Drover detects:</p>
            <Command text="drover runner" />
          </EmptyState>
        ) : (
          <Table
            label="Runners"
            columns={buildColumns(me.data?.role === "admin" || me.data?.role === "user")}
            rows={runners.data ?? []}
            getKey={({ runner_id }) => runner_id}
          />
        )}
      </Card>
    </>
  );
}

const buildColumns = (canDrain: boolean): Column<Runner>[] => [
  { head: "State", cell: (runner) => <RunnerState status={runner.status} /> },
  {
    head: "Profile",
    cell: ({ name, executor_profile, executor }) => (
      <>
        <b>{name ?? executor_profile}</b>
        <span className="faint"> {executor.type}</span>
      </>
    ),
  },
  { head: "Host", tone: "dim", cell: ({ hostname }) => hostname },
  {
    head: "Directory",
    tone: "dim",
    mono: true,
    title: ({ project_dir }) => project_dir,
    cell: ({ project_dir }) => project_dir,
  },
  { head: "Tags", tone: "dim", cell: ({ tags }) => tags.join(", ") || "—" },
  {
    head: "Agents",
    tone: "dim",
    title: ({ agents }) => agents.join(", "),
    cell: ({ agents }) => agents.join(", ") || "any",
  },
  { head: "Slots", cell: (runner) => <Slots {...runner} /> },
  { head: "Heartbeat", right: true, cell: ({ last_seen_at }) => <Heartbeat at={last_seen_at} /> },
  { head: "Since", right: true, tone: "faint", cell: ({ registered_at }) => <Age at={registered_at} /> },
  { head: "Actions", hideHeader: true, right: true, cell: (runner) => <Drain runner={runner} canDrain={canDrain} /> },
];

function Drain({ runner, canDrain }: { runner: Runner; canDrain: boolean }) {
  const isDraining = runner.status === "draining";
  const toggleDrain = (): void =>
    void api.runners.drain(runner.runner_id, !isDraining).then(() => {
      toast(isDraining ? "The runner accepts new runs again" : "Draining: the runner accepts no new runs");
      return queryClient.invalidateQueries({ queryKey: ["runners"] });
    }, toastError);
  return (
    <Button
      variant="quiet"
      disabledReason={canDrain ? (runner.status === "lost" ? "The runner is lost" : null) : "Your token is read-only"}
      onClick={toggleDrain}
    >
      {isDraining ? "Resume" : "Drain"}
    </Button>
  );
}
