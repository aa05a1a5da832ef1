import type { RunRow } from "../model/store.ts";
import { toStatusCell, toTimeCell } from "./cells.ts";
import { findDroverCommand } from "./drover-command.ts";
import { formatColumns } from "./help.ts";
import { write } from "./io.ts";
import { summarizeInput } from "./question-view.ts";
import type { Activity } from "./read-activity.ts";
import { createIdShortener } from "./short-ids.ts";
import { type Cell, formatAge, writeTable } from "./table.ts";
import { createStyleFor } from "./terminal/style.ts";

export interface Status {
  /** null if no coordinator serves. */
  coordinator: {
    url: string;
    version: string;
    engine: "sqlite" | "postgres" | null;
    started_at: string | null;
    subject: string;
    role: string;
  } | null;
  /** null if the coordinator was named by DROVER_API_URL: its state is on its own machine. */
  state: { directory: string; because: string } | null;
  /** null if there is no record. */
  activity: Activity | null;
}

const engineNames = { sqlite: "SQLite", postgres: "PostgreSQL" };

export function showStatus({ coordinator, state, activity }: Status, { quiet }: { quiet: boolean }): void {
  const now = new Date();
  const rows: [string, string][] = [];
  if (coordinator) {
    const { url, version, engine, started_at, subject, role } = coordinator;
    rows.push(["serving", `${url}, version ${version}${engine ? `, ${engineNames[engine]}` : ""}`]);
    if (started_at) rows.push(["since", `${started_at} (${formatAge(started_at, now)})`]);
    rows.push(["you are", `${subject} (${role})`]);
  } else rows.push(["serving", "nothing: no coordinator is running here"]);
  if (state) rows.push(["state", `${state.directory} (${state.because})`]);
  else rows.push(["state", "on the coordinator's machine"]);
  if (activity) rows.push(["runs", summarize(activity)]);
  write(1, `${formatColumns(rows).join("\n")}\n`);
  if (activity) showActivity(activity, now);
  if (coordinator || quiet) return;
  const drover = findDroverCommand();
  write(
    2,
    `
Start a coordinator and a runner here: ${drover} up
Or use another coordinator: set DROVER_API_URL and DROVER_API_KEY
Without one, ${drover} run and ${drover} exec work in their own process.
`,
  );
}

function summarize({ running, pending, questions, parked, failed }: Activity): string {
  const counts: [number, string][] = [
    [running.count, "running"],
    [pending.count, "pending"],
    [questions.count, questions.count === 1 ? "open question" : "open questions"],
    [parked.count, "parked"],
    [failed.count, "failed in the last 24 h"],
  ];
  return counts.map(([count, name]) => `${count >= 1000 ? "1000 or more" : count} ${name}`).join(", ");
}

function showActivity({ runners, running, pending, questions, parked, failed }: Activity, now: Date): void {
  const drover = findDroverCommand();
  const shortenId = createIdShortener(parked.items.map(({ run_id }) => run_id));
  showSection(
    "Runners",
    ["ID", "STATUS", "PROFILE", "HOST", "SLOTS USED", "SEEN"],
    runners.map((runner) => [
      { id: runner.runner_id },
      toStatusCell(runner.status),
      runner.executor_profile,
      runner.hostname,
      `${runner.running} of ${runner.slots}`,
      toTimeCell(runner.last_seen_at, now),
    ]),
  );
  showSection(
    "Running",
    ["RUN", "AGENT", "STATUS", "STARTED", "RUNNER"],
    running.items.map((row) => [
      { id: row.run_id },
      row.agent_name,
      toStatusCell(row.status),
      toTimeCell(row.started_at ?? row.created_at, now),
      row.runner_id === null ? "-" : { id: row.runner_id },
    ]),
    running.count,
    `${drover} runs list --status claimed,running,stopping`,
  );
  showSection(
    "Pending",
    ["RUN", "AGENT", "SUBMITTED", "WAITS FOR"],
    pending.items.map((row) => [
      { id: row.run_id },
      row.agent_name,
      toTimeCell(row.created_at, now),
      row.why.map(({ demand, detail }) => `${demand}: ${detail}`).join("; ") || "a free slot of a runner",
    ]),
    pending.count,
    `${drover} runs list --status pending`,
  );
  showSection(
    "Waiting for an answer",
    ["RUN", "AGENT", "ASKED", "TOOL", "ASKS"],
    questions.items.map(({ run_id, agent_name, asked_at, tool, input }) => [
      { id: run_id },
      agent_name,
      toTimeCell(asked_at, now),
      tool,
      summarizeInput(input),
    ]),
    questions.count,
    `${drover} questions`,
  );
  showSection(
    "Parked",
    ["RUN", "AGENT", "REASON", "CONTINUES"],
    parked.items.map((row) => [
      { id: row.run_id },
      row.agent_name,
      describeParkReason(row),
      toContinuationCell(row, shortenId, now),
    ]),
    parked.count,
    `${drover} runs list --status parked`,
  );
  showSection(
    "Failed in the last 24 h",
    ["RUN", "AGENT", "REASON", "ENDED", "SUMMARY"],
    failed.items.map((row) => [
      { id: row.run_id },
      row.agent_name,
      row.reason === null ? "-" : { shown: row.reason, piped: row.reason, tone: "red" },
      toTimeCell(row.finished_at ?? row.created_at, now),
      row.error ?? row.summary ?? "",
    ]),
    failed.count,
    `${drover} runs list --status failed`,
  );
}

/** Prints nothing for an empty section. `more` is the command that lists all `count` rows. */
function showSection(
  title: string,
  header: readonly string[],
  rows: readonly (readonly Cell[])[],
  count = rows.length,
  more = "",
): void {
  if (rows.length === 0) return;
  write(1, `\n${createStyleFor(1, process.env).bold(title)}\n`);
  writeTable(header, rows);
  if (count > rows.length) write(1, `${count - rows.length} more: ${more}\n`);
}

const parkReasons = { approval: "waits for an answer", budget: "budget spent", usage_limit: "usage limit reached" };

function describeParkReason({ parked_why, waiting_for }: RunRow): string {
  const reason = parked_why ? parkReasons[parked_why] : "-";
  return waiting_for ? `${reason}: ${waiting_for}` : reason;
}

/** When the run continues automatically, or the command that continues it, with an id as short as the table's on a terminal. */
function toContinuationCell(
  { run_id, parked_why, parked_until }: RunRow,
  shortenId: (id: string) => string,
  now: Date,
): Cell {
  if (parked_why === "approval") return "when it is answered";
  if (parked_until !== null) return toTimeCell(parked_until, now);
  const command = `${findDroverCommand()} runs resume`;
  return { shown: `${command} ${shortenId(run_id)}`, piped: `${command} ${run_id}` };
}
