import type { SessionVersion } from "../model/session.ts";
import type { Output } from "../wire/contracts.ts";
import { toStatusCell, toTimeCell } from "./cells.ts";
import { connect } from "./connect.ts";
import {
  type ContinuableSession,
  describeContinuation,
  assessSessions,
  listAgentsHere,
  readSessionPage,
} from "./continuable-sessions.ts";
import { formatColumns } from "./help.ts";
import { findSession } from "./find-id.ts";
import { withRecord } from "./with-record.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readLimit, readText } from "./options.ts";
import { quoteForShell } from "./shell-quote.ts";
import { formatTree } from "./session-tree.ts";
import { toHintId } from "./short-ids.ts";
import { type Cell, replaceControlCharacters, writeTable } from "./table.ts";
import { findDroverCommand } from "./drover-command.ts";

export const sessionsList: CommandSpec = {
  name: "sessions list",
  summary: "list sessions, newest first, and whether they can be continued",
  placeholders: "",
  arity: [0, 0],
  examples: [
    ["drover sessions list", "the latest 50"],
    ["drover sessions list --agent claude --json", "the sessions of one agent, as JSON lines"],
  ],
  options: {
    agent: { placeholder: "NAME", description: "sessions of this agent" },
    limit: { placeholder: "N", description: "page size (default: 50, at most 1000)" },
    cursor: { placeholder: "C", description: "start at the cursor that the previous page printed" },
  },
  run: listSessions,
};

export const sessionsShow: CommandSpec = {
  name: "sessions show",
  summary: "show one session and its runs",
  placeholders: "SESSION",
  arity: [1, 1],
  examples: [["drover sessions show 5c20e9d4", "by id, or by its beginning or end"]],
  options: {},
  run: showSession,
};

export const sessionsDelete: CommandSpec = {
  name: "sessions delete",
  summary: "delete a session and its directories on the runner; its runs stay on the record",
  placeholders: "SESSION...",
  arity: [1, Infinity],
  examples: [["drover sessions delete 5c20e9d4", "fails while one of its runs is active"]],
  options: {},
  run: deleteSessions,
};

async function listSessions(input: CommandInput): Promise<number> {
  const { options } = input;
  const agent = readText(options, "agent");
  const limit = readLimit(options, "sessions list");
  const query = { agent_name: agent, limit, cursor: readText(options, "cursor") };
  const page = await withRecord(input, (client, hasCoordinator) => readSessionPage(client, hasCoordinator, query));
  if (!page) return 0;
  const agents = page.agents ?? (await listAgentsHere(input, (await connect(input)).project));
  const now = new Date();
  const sessions = assessSessions({ ...page, agents }, now);
  if (options["json"]) for (const session of sessions) write(1, toJsonLine(session));
  else
    writeTable(
      ["ID", "AGENT", "RUNS", "LAST RUN", "USED", "CONTINUE", "HOST", "WHERE"],
      sessions.map((session) => toCells(session, now)),
    );
  if (page.next_cursor && !options["quiet"]) {
    const agentOption = agent ? ` --agent ${quoteForShell(agent)}` : "";
    write(
      2,
      `More: ${findDroverCommand()} sessions list${agentOption} --limit ${limit} --cursor ${quoteForShell(page.next_cursor)}\n`,
    );
  }
  return 0;
}

function toCells(session: ContinuableSession, now: Date): Cell[] {
  const { last_run } = session;
  return [
    { id: session.session_id },
    session.agent_name,
    String(session.run_count),
    last_run === null ? "-" : toStatusCell(last_run.status),
    toTimeCell(session.last_used_at, now),
    describeContinuation(session),
    session.hostname ?? "-",
    session.project_dir ?? "-",
  ];
}

async function showSession(input: CommandInput): Promise<number> {
  const session = await withRecord(input, (client) => findSession(client, input.positionals[0]!));
  if (!session) return 1;
  if (input.options["json"]) write(1, toJsonLine(session));
  else {
    showHead(session);
    write(1, "\n");
    writeTable(["RUN", "MODE", "STATUS", "AFTER RUN"], session.versions.map(toVersionCells));
    const tree = formatTree(session);
    if (tree.length > 0) write(1, `\n${tree.join("\n")}\n`);
  }
  if (session.executor_session_id && !input.options["quiet"])
    write(2, `Continue: ${findDroverCommand()} sessions resume ${toHintId(session.session_id)} --prompt "..."\n`);
  return 0;
}

function showHead(session: Output<"GET /sessions/{session_id}">): void {
  const rows: [string, string | null][] = [
    ["session", session.session_id],
    ["agent", session.agent_name],
    ["executor id", session.executor_session_id],
    ["forked from", session.forked_from],
    ["at turn", session.fork_at_turn === null ? null : String(session.fork_at_turn)],
    ["runs", String(session.run_count)],
    ["by", session.created_by],
    ["host", session.hostname],
    ["profile", session.executor_profile],
    ["directory", session.project_dir],
    ["created", session.created_at],
    ["last used", session.last_used_at],
  ];
  const visibleRows = rows.flatMap(([name, value]): [string, string][] =>
    value ? [[name, replaceControlCharacters(value)]] : [],
  );
  write(1, `${formatColumns(visibleRows).join("\n")}\n`);
}

function toVersionCells({ run_id, mode, status, parent }: SessionVersion): Cell[] {
  return [{ id: run_id }, mode, toStatusCell(status), parent === null ? "-" : { id: parent }];
}

async function deleteSessions(input: CommandInput): Promise<number> {
  const deletedIds = await withRecord(input, async (client) => {
    const ids: string[] = [];
    // Find all sessions before the first is deleted, so that a wrong id deletes nothing.
    for (const query of input.positionals) ids.push((await findSession(client, query)).session_id);
    for (const session_id of ids) {
      await client.sessions.remove(session_id);
      write(1, input.options["json"] ? toJsonLine({ session_id, deleted: true }) : `${session_id}\n`);
    }
    return ids;
  });
  if (!deletedIds) return 1;
  if (!input.options["quiet"])
    write(
      2,
      `Deleted ${deletedIds.length} ${deletedIds.length === 1 ? "session" : "sessions"}. To list the runs of a deleted session: ${findDroverCommand()} runs list --session-id SESSION\n`,
    );
  return 0;
}
