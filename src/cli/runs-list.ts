import type { ApiClient } from "../wire/client.ts";
import { toStatusCell, toTimeCell } from "./cells.ts";
import { connect } from "./connect.ts";
import { withRecord } from "./with-record.ts";
import { isTerminal, write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, maxLimit, type ParsedOptions, usageError } from "./options.ts";
import { filterOptions, type ListedRun, readRunQuery, resolveIds, type RunPage, type RunQuery } from "./runs-filter.ts";
import { quoteForShell } from "./shell-quote.ts";
import { type Cell, formatDuration, writeTable } from "./table.ts";
import { watchRuns } from "./watch-runs.ts";
import { findDroverCommand } from "./drover-command.ts";

export const runsList: CommandSpec = {
  name: "runs list",
  summary: "list runs, newest first",
  placeholders: "",
  arity: [0, 0],
  examples: [
    ["drover runs list", "the latest 50"],
    ["drover runs list --status failed --since 1h", "failed runs of the last hour; also --since 2026-01-31"],
    ["drover runs list --watch", "keep the list up to date until Ctrl-C"],
    ["drover runs list --search 'deploy staging'", "runs that contain both words"],
    ["drover runs list --task-id T-12 --json", "runs of task T-12, as JSON lines"],
  ],
  options: {
    watch: { description: "keep the list up to date; without a terminal, print each run that is new or has changed" },
    ...filterOptions,
  },
  run: listRuns,
};

async function listRuns(input: CommandInput): Promise<number> {
  const { options } = input;
  const query = readRunQuery(options);
  const readPage = async (client: ApiClient): Promise<RunPage> => client.runs.list(await resolveIds(client, query));
  if (options["watch"]) {
    if (query.cursor !== undefined)
      throw usageError("--watch shows the newest runs, so it takes no --cursor.", "runs list", "--cursor");
    const readAgain = await createPageReader(input, readPage);
    return watchRuns(readAgain, { header: toHeader(query), toCells, json: options["json"] === true });
  }
  const page = await withRecord(input, readPage);
  if (!page) return 0;
  if (options["json"]) for (const row of page.items) write(1, toJsonLine(row));
  else {
    const now = new Date();
    writeTable(
      toHeader(query),
      page.items.map((row) => toCells(row, now)),
    );
  }
  if (page.indexing) write(2, "Older runs are still being indexed, so some matches may be missing. Try again later.\n");
  if (page.next_cursor && !options["quiet"]) write(2, `More: ${toNextPageCommand(options, query, page.next_cursor)}\n`);
  return 0;
}

/** Without DROVER_API_URL, finds the coordinator or the record again for each page, because the coordinator may restart. */
async function createPageReader(
  input: CommandInput,
  readPage: (client: ApiClient) => Promise<RunPage>,
): Promise<() => Promise<RunPage | null>> {
  const { client } = input.env["DROVER_API_URL"] ? await connect(input) : { client: null };
  if (client) return () => readPage(client);
  const quietInput = { ...input, options: { ...input.options, quiet: true as const } };
  return () => withRecord(quietInput, readPage);
}

/** Returns the command for more runs, with the same filters. On a terminal the command shows a longer list, which is easier to read. */
function toNextPageCommand(options: ParsedOptions, { limit, cursor }: RunQuery, nextCursor: string): string {
  const isLonger = isTerminal(2) && cursor === undefined && limit < maxLimit;
  const page = isLonger ? { limit: String(Math.min(limit * 2, maxLimit)) } : { cursor: nextCursor };
  const args = Object.entries({ ...options, ...page }).flatMap(([name, value]) =>
    typeof value === "string" ? [`--${name}`, quoteForShell(value)] : [`--${name}`],
  );
  return [`${findDroverCommand()} runs list`, ...args].join(" ");
}

function toHeader({ search }: RunQuery): string[] {
  return ["ID", "STATUS", "EXIT", "AGENT", "DURATION", "AGE", search === undefined ? "SUMMARY" : "MATCH"];
}

function toCells(row: ListedRun, now: Date): Cell[] {
  return [
    { id: row.run_id },
    // On a terminal the reason is left out, because the next column shows the exit code.
    row.reason === "exit_nonzero"
      ? { ...toStatusCell(row.status), piped: `${row.status}: ${row.reason}` }
      : toStatusCell(row.status, row.reason),
    row.exit_code === null ? "-" : String(row.exit_code),
    row.agent_name,
    toDurationCell(row, now),
    toTimeCell(row.created_at, now),
    row.match ? `${row.match.where}: ${row.match.excerpt}` : (row.summary ?? ""),
  ];
}

/** Creates the cell for the duration. For an unfinished run, only a terminal shows how long it has been running. */
function toDurationCell({ started_at, finished_at }: ListedRun, now: Date): Cell {
  if (started_at === null) return "-";
  const finished = finished_at === null ? now.getTime() : Date.parse(finished_at);
  const duration = formatDuration(Math.max(0, finished - Date.parse(started_at)));
  return { shown: duration, piped: finished_at === null ? "-" : duration };
}
