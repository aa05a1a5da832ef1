import { Link } from "@tanstack/react-router";
import type { Execution } from "../data/queries.ts";
import { formatShortId } from "./numbers.ts";
import { Status } from "./status.tsx";
import { type Column, Table, tableLink } from "./table.tsx";
import { Age, formatDuration } from "./time.tsx";

const run: Column<Execution> = {
  head: "Run",
  cell: ({ run_id }) => (
    <Link className={tableLink} to="/runs/$runId" params={{ runId: run_id }}>
      <span className="mono">{formatShortId(run_id)}</span>
    </Link>
  ),
};

const directory: Column<Execution> = {
  head: "Directory",
  tone: "dim",
  title: ({ start }) => start.working_directory,
  cell: ({ start }) => start.working_directory,
};

const buildColumns = (withRun: boolean): Column<Execution>[] => [
  { head: "End", cell: (execution) => <End {...execution} /> },
  { head: "Command", mono: true, title: ({ start }) => start.command, cell: ({ start }) => start.command },
  withRun ? run : directory,
  { head: "Isolation", tone: "dim", cell: ({ end }) => end?.isolation ?? "—" },
  {
    head: "Duration",
    right: true,
    cell: ({ end }) =>
      end?.duration_ms === undefined || end.duration_ms === null ? "—" : formatDuration(end.duration_ms),
  },
  { head: "Age", right: true, tone: "faint", cell: ({ start }) => <Age at={start.started_at} /> },
];

export function ExecutionTable({
  executions,
  withRun = false,
}: {
  executions: readonly Execution[];
  withRun?: boolean;
}) {
  return (
    <Table
      label="Programs"
      columns={buildColumns(withRun)}
      rows={executions}
      getKey={({ start }) => start.execution_id}
    />
  );
}

function End({ end }: Execution) {
  if (end === null) return <Status status="running" />;
  if (end.interrupted) return <Status status="cancelled" label="Interrupted" />;
  const label = end.exit_code === null ? (end.signal ?? "ended") : `exit ${end.exit_code}`;
  return <Status status={end.success ? "completed" : "failed"} label={label} />;
}
