import { maxSearchTerms, searchTerms } from "../model/search-terms.ts";
import { runStatuses } from "../model/states.ts";
import type { RunFilter, RunRow } from "../model/store.ts";
import { write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, type ParsedOptions, readLimit, text, usage } from "./options.ts";
import { withHistory } from "./history.ts";
import { shellQuote } from "./shell-quote.ts";
import { formatAge, formatDuration, writeTable } from "./table.ts";
import { droverCommand } from "./drover-command.ts";

const idFilters = {
  "session-id": "runs of this session",
  "task-id": "runs for this task",
  "step-id": "runs for this step",
  "tool-call-id": "runs for this tool call",
  "worktree-id": "runs in this worktree",
  "repo-sha": "runs on this commit",
} as const;

export const runsList: CommandSpec = {
  name: "runs list",
  summary: "list runs, newest first",
  takes: "",
  arity: [0, 0],
  examples: [
    ["drover runs list", "the latest 50"],
    ["drover runs list --status failed --since 2026-01-31", "failed runs since this day"],
    ["drover runs list --search 'deploy staging'", "runs that contain both words"],
    ["drover runs list --task-id T-12 --json", "runs of task T-12, as JSON lines"],
  ],
  options: {
    search: { value: "TEXT", about: 'words in prompt, result, error or tool input; "quotes" for a phrase' },
    status: { value: "S", about: `one of ${runStatuses.join(", ")}, or several separated by commas` },
    agent: { value: "NAME", about: "runs of this agent" },
    "parent-run-id": { value: "ID", about: "child runs of this run" },
    ...Object.fromEntries(Object.entries(idFilters).map(([name, about]) => [name, { value: "ID", about }])),
    since: { value: "TIME", about: "runs created at or after this time, e.g. 2026-01-31 or 2026-01-31T12:00:00Z" },
    until: { value: "TIME", about: "runs created before this time" },
    limit: { value: "N", about: "page size (default 50, at most 1000)" },
    cursor: { value: "C", about: "start at the cursor that the previous page printed" },
  },
  run: listRuns,
};

async function listRuns(input: CommandInput): Promise<number> {
  const filter = readFilter(input.options);
  const search = readSearch(input.options);
  const limit = readLimit(input.options, "runs list");
  const page = await withHistory(input, ({ runs }) =>
    runs.list({ ...filter, ...(search === undefined ? {} : { search }), limit, cursor: text(input.options, "cursor") }),
  );
  if (!page) return 0;
  if (input.options["json"]) {
    for (const row of page.items) write(1, jsonLine(row));
  } else {
    const now = new Date();
    writeTable(
      ["ID", "STATUS", "EXIT", "AGENT", "DURATION", "AGE", search === undefined ? "SUMMARY" : "MATCH"],
      page.items.map((row) => cells(row, now)),
    );
  }
  if (page.indexing) write(2, "Older runs are still being indexed, so some matches may be missing. Try again later.\n");
  if (page.next_cursor && !input.options["quiet"]) write(2, `More: ${nextPage(input.options, page.next_cursor)}\n`);
  return 0;
}

/** The command for the next page, with the same filters. */
function nextPage(options: ParsedOptions, cursor: string): string {
  const args = Object.entries({ ...options, cursor }).flatMap(([name, value]) =>
    typeof value === "string" ? [`--${name}`, shellQuote(value)] : [`--${name}`],
  );
  return [`${droverCommand()} runs list`, ...args].join(" ");
}

function cells(row: RunRow & { match?: { where: string; excerpt: string } | undefined }, now: Date): string[] {
  const durationMs =
    row.started_at && row.finished_at ? Date.parse(row.finished_at) - Date.parse(row.started_at) : null;
  return [
    row.run_id,
    row.reason ? `${row.status}: ${row.reason}` : row.status,
    row.exit_code === null ? "-" : String(row.exit_code),
    row.agent_name,
    formatDuration(durationMs),
    formatAge(row.created_at, now),
    row.match ? `${row.match.where}: ${row.match.excerpt}` : (row.summary ?? ""),
  ];
}

function readFilter(options: ParsedOptions): RunFilter {
  const filter: RunFilter = {};
  const status = text(options, "status");
  if (status) filter.status = status.split(",").map(toStatus);
  const agent = text(options, "agent");
  if (agent) filter.agent_name = agent;
  const parent = text(options, "parent-run-id");
  if (parent) filter.parent_run_id = parent;
  for (const name of Object.keys(idFilters)) {
    const value = text(options, name);
    // safe: the option names are the filter's keys with dashes
    if (value) filter[name.replaceAll("-", "_") as "session_id"] = value;
  }
  for (const name of ["since", "until"] as const) {
    const time = readTime(options, name);
    if (time) filter[name] = time;
  }
  return filter;
}

function readSearch(options: ParsedOptions): string | undefined {
  const value = text(options, "search");
  if (value === undefined) return undefined;
  const { length } = searchTerms(value);
  if (length > 0 && length <= maxSearchTerms) return value;
  const problem = length === 0 ? "contains no words to search for" : `has more than ${maxSearchTerms} words`;
  throw usage(`--search ${value} ${problem}.`, "runs list", "--search");
}

function toStatus(name: string) {
  const status = runStatuses.find((known) => known === name.trim());
  if (status) return status;
  throw usage(`--status ${name} is not one of ${runStatuses.join(", ")}.`, "runs list", "--status");
}

function readTime(options: ParsedOptions, name: "since" | "until"): string | undefined {
  const value = text(options, name);
  if (value === undefined) return undefined;
  const ms = Date.parse(value);
  if (Number.isNaN(ms)) throw usage(`--${name} ${value} is not a date or time.`, "runs list", `--${name}`);
  return new Date(ms).toISOString();
}
