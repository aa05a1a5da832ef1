import type { StoredEvent } from "../model/event.ts";
import type { StoredFile } from "../model/file.ts";
import { getDisplayBytes } from "../model/output.ts";
import type { Run } from "../model/run.ts";
import type { Execution } from "../model/store.ts";
import { describeUsage } from "./event-line.ts";
import { findAgentType } from "./find-agent-type.ts";
import { findRun } from "./find-id.ts";
import { formatColumns } from "./help.ts";
import { readAllEvents, withRecord } from "./with-record.ts";
import { write, writeContent } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { formatDuration, replaceControlCharacters } from "./table.ts";
import { findDroverCommand } from "./drover-command.ts";

export const runsShow: CommandSpec = {
  name: "runs show",
  summary: "show one run and its output",
  placeholders: "RUN",
  arity: [1, 1],
  examples: [
    ["drover runs show 5c20e9d4", "by id, or by its beginning or end"],
    ["drover runs show last", "your newest run"],
    ["drover runs show last --json", "everything that was recorded"],
  ],
  options: {},
  run: showRun,
};

async function showRun(input: CommandInput): Promise<number> {
  const id = input.positionals[0]!;
  const details = await withRecord(input, async (client) => {
    const run = await findRun(client, id);
    const { items: executions } = await client.executions.list({ run_id: run.run_id, limit: 1000 });
    const events: StoredEvent[] = [];
    for await (const event of readAllEvents(client, run.run_id)) events.push(event);
    const { items: files } = await client.runs.files(run.run_id);
    const isCommand = run.agent_name === "exec" || (await findAgentType(client, run)) === "procedural";
    return { run, executions, events, files, isCommand };
  });
  if (!details) return 1;
  if (input.options["json"]) {
    const { run, executions, events, files } = details;
    write(1, toJsonLine({ ...run, executions, events, files }));
  } else {
    showHead(details);
    showOutput(details.events);
    showResult(details);
  }
  return 0;
}

interface Details {
  run: Run;
  executions: Execution[];
  events: StoredEvent[];
  files: StoredFile[];
  /** Whether the run is one command. An autonomous run may start any number of programs. */
  isCommand: boolean;
}

function showHead({ run, executions, files, isCommand }: Details): void {
  // Newest first. Programs inside a run report their own executions.
  const own = executions.filter(({ start }) => start.reported_by === undefined);
  const mainExecution = isCommand ? own[0] : undefined;
  const end = mainExecution?.end;
  const rows: [string, string | null | undefined][] = [
    ["run", run.run_id],
    ["agent", run.agent_name],
    ["status", run.reason ? `${run.status} (${run.reason})` : run.status],
    ["error", run.error && `${run.error}${end?.error ? ` [${end.error.code}]` : ""}`],
    ["exit code", run.exit_code === null ? null : String(run.exit_code)],
    ["signal", end?.signal],
    ["command", mainExecution?.start.command],
    ...(isCommand ? [] : listExecutions("program", own, describeProgram)),
    ...listExecutions(
      "nested",
      executions.filter(({ start }) => start.reported_by !== undefined),
      (execution) => `${describeProgram(execution).slice(0, -1)}, reported by the command)`,
    ),
    ["directory", run.project_dir],
    ["started", run.started_at],
    ["took", describeDuration(run)],
    ["isolation", run.isolation],
    ["left over", end?.leftovers ? `${end.leftovers} processes, now killed` : null],
    ["resources", describeResources(end)],
    ["usage", run.usage && describeUsage(run.usage)],
    ["files", files.length === 0 ? null : `${files.length}: ${findDroverCommand()} runs files ${run.run_id}`],
    ["by", run.created_by],
    ["part of run", run.parent_run_id],
    ["session", run.session_id],
    ["forked from", run.forked_from],
    ["task", run.task_id],
    ["step", run.step_id],
    ["tool call", run.tool_call_id],
    ["worktree", run.worktree_id],
    ["commit", run.repo_sha],
  ];
  const visibleRows = rows.flatMap(([name, value]): [string, string][] =>
    value ? [[name, replaceControlCharacters(value)]] : [],
  );
  write(1, `${formatColumns(visibleRows).join("\n")}\n`);
}

const maxExecutionsShown = 20;

/** Returns a row for each execution, oldest first. */
function listExecutions(
  name: string,
  newestFirst: Execution[],
  describe: (execution: Execution) => string,
): [string, string][] {
  const shown = newestFirst.toReversed().slice(0, maxExecutionsShown);
  const hidden = newestFirst.length - shown.length;
  return [
    ...shown.map((execution): [string, string] => [name, describe(execution)]),
    ...(hidden > 0 ? [[name, `${hidden} more: ${findDroverCommand()} runs show --json`] as [string, string]] : []),
  ];
}

function describeProgram({ start, end }: Execution): string {
  const state =
    end === null ? "running" : end.interrupted ? "interrupted" : `exit ${end.signal ?? end.exit_code ?? "?"}`;
  return `${start.command} (${state})`;
}

/** Describes the time from the start of the run to its end. It includes what Drover did before and after a command. */
function describeDuration({ started_at, finished_at }: Run): string | null {
  if (started_at === null || finished_at === null) return null;
  return formatDuration(Math.max(0, Date.parse(finished_at) - Date.parse(started_at)));
}

function describeResources(end: Execution["end"] | undefined): string | null {
  if (!end?.resources) return null;
  const { user_ms, system_ms, max_rss_kb } = end.resources;
  return `${formatDuration(user_ms)} user, ${formatDuration(system_ms)} system, ${Math.round(max_rss_kb / 1024)} MB at most`;
}

function showOutput(events: StoredEvent[]): void {
  for (const stream of ["stdout", "stderr"] as const) {
    const bytes = Buffer.concat(
      events.flatMap(({ event }) =>
        event.type === "output" && event.stream === stream ? [getDisplayBytes(event)] : [],
      ),
    );
    if (bytes.length === 0) continue;
    write(1, `\n${stream}\n`);
    writeContent(bytes);
    if (bytes.at(-1) !== newline) write(1, "\n");
  }
}

const newline = 0x0a;

/** Prints the result. The result of a command is what it wrote to stdout, which is already printed. */
function showResult({ run: { result_text, result_data }, events, isCommand }: Details): void {
  if (isCommand && events.some(({ event }) => event.type === "output" && event.stream === "stdout")) return;
  if (result_text) {
    write(1, "\nresult\n");
    writeContent(result_text.endsWith("\n") ? result_text : `${result_text}\n`);
  }
  if (result_data === null || result_data === undefined) return;
  write(1, "\nresult data\n");
  writeContent(`${JSON.stringify(result_data, null, 2)}\n`);
}
