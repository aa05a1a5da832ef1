import type { StoredEvent } from "../model/event.ts";
import type { StoredFile } from "../model/file.ts";
import { getDisplayBytes } from "../model/output.ts";
import type { Run } from "../model/run.ts";
import type { Execution } from "../model/store.ts";
import { describeUsage } from "./event-line.ts";
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
    return { run, executions, events, files };
  });
  if (!details) return 1;
  if (input.options["json"]) {
    const { run, executions, events, files } = details;
    write(1, toJsonLine({ ...run, executions, events, files }));
  } else {
    showHead(details);
    showOutput(details.events);
    showAnswer(details.run, details.events);
  }
  return 0;
}

function showHead({ run, executions, files }: { run: Run; executions: Execution[]; files: StoredFile[] }): void {
  // The newest execution that Drover itself started.
  const mainExecution = executions.find(({ start }) => start.reported_by === undefined);
  const nested = executions.filter(({ start }) => start.reported_by !== undefined).toReversed();
  const end = mainExecution?.end;
  const rows: [string, string | null | undefined][] = [
    ["run", run.run_id],
    ["agent", run.agent_name],
    ["status", run.reason ? `${run.status} (${run.reason})` : run.status],
    ["error", run.error && `${run.error}${end?.error ? ` [${end.error.code}]` : ""}`],
    ["exit code", run.exit_code === null ? null : String(run.exit_code)],
    ["signal", end?.signal],
    ["command", mainExecution?.start.command],
    ...nested.slice(0, maxNestedShown).map((execution): [string, string] => ["nested", describeNested(execution)]),
    [
      "nested",
      nested.length > maxNestedShown
        ? `${nested.length - maxNestedShown} more: ${findDroverCommand()} runs show --json`
        : null,
    ],
    ["directory", run.project_dir],
    ["started", run.started_at],
    ["took", end?.duration_ms == null ? null : formatDuration(end.duration_ms)],
    ["isolation", run.isolation],
    ["left over", end?.leftovers ? `${end.leftovers} processes, now killed` : null],
    ["resources", describeResources(end)],
    ["usage", run.usage && describeUsage(run.usage)],
    ["files", files.length === 0 ? null : `${files.length}: drover runs files ${run.run_id}`],
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

const maxNestedShown = 20;

/** Describes a nested execution, which a command inside the run reported. */
function describeNested({ start, end }: Execution): string {
  const state =
    end === null ? "running" : end.interrupted ? "interrupted" : `exit ${end.signal ?? end.exit_code ?? "?"}`;
  return `${start.command} (${state}, reported by the command)`;
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

/** Prints the agent's answer if the run wrote nothing to stdout. */
function showAnswer({ result_text }: Run, events: StoredEvent[]): void {
  if (!result_text || events.some(({ event }) => event.type === "output" && event.stream === "stdout")) return;
  write(1, "\nresult\n");
  writeContent(result_text.endsWith("\n") ? result_text : `${result_text}\n`);
}
