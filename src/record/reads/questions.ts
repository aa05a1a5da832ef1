import type { Question, QuestionReads, UsageRow } from "../../model/question.ts";
import { countFittingRows } from "./events.ts";
import { all, first, type Row, type SqlValue, type Work } from "../query.ts";
import { fromColumn, textOrNull, toColumn } from "../text.ts";

const columns = [
  ["question_no", "request_id", "attempt", "created_by", "tool", "input", "effect", "input_schema", "asked_at"],
  ["expires_at", "decision", "answered_by", "answered_at", "message", "edited_input", "remember"],
]
  .flat()
  .map((name) => `questions.${name}`)
  .join(", ");
const selectQuestions = `
  select ${columns}, runs.run_id, runs.agent_name, runs.session_id, runs.parent_run_id
  from questions join runs on runs.run_no = questions.run_no`;
const selectSizes = `
  select octet_length(questions.input) + coalesce(octet_length(questions.input_schema), 0)
    + coalesce(octet_length(questions.edited_input), 0) as size from questions`;
const runCondition = `questions.run_no = (select run_no from runs where run_id = ?)`;
const selectNewest = `${selectQuestions} where ${runCondition} and questions.request_id = ? order by questions.attempt desc limit 1`;
const selectParent = `select run_id, agent_name, parent_run_id from runs where run_id = ?`;

/** The count stops here, however many questions there are. */
const maxCounted = 10_000;
const maxParents = 20;

export function* readQuestion(run_id: string, request_id: string): Work<Question | null> {
  const [row] = yield first(selectNewest, toColumn(run_id), toColumn(request_id));
  return row === undefined ? null : yield* toQuestion(row, new Map());
}

export function* readQuestions(
  filter: Parameters<QuestionReads["questions"]>[0],
  page: Parameters<QuestionReads["questions"]>[1],
): Work<{ items: Question[]; next: string | null; count: number }> {
  const conditions: string[] = [];
  const values: SqlValue[] = [];
  // Repeats the condition of the partial indexes word for word. Otherwise SQLite would not use them.
  if (filter.open !== undefined) conditions.push(`questions.decision is ${filter.open ? "" : "not "}null`);
  if (filter.created_by !== undefined) addCondition("questions.created_by = ?", toColumn(filter.created_by));
  if (filter.run_id !== undefined) addCondition(runCondition, toColumn(filter.run_id));
  const countText = `select count(*) as count from (select 1 from questions ${toWhereClause(conditions)} limit ?) as portion`;
  const [countRow] = yield first(countText, ...values, maxCounted);
  if (page.after !== undefined) addCondition("questions.question_no > ?", Number(page.after));
  const pageClause = `${toWhereClause(conditions)} order by questions.question_no limit ?`;
  const measured = yield all(`${selectSizes} ${pageClause}`, ...values, page.limit);
  const fitting = countFittingRows(measured);
  const rows = yield all(`${selectQuestions} ${pageClause}`, ...values, fitting);
  const items: Question[] = [];
  const knownParents = new Map<string, Row | undefined>();
  for (const row of rows) items.push(yield* toQuestion(row, knownParents));
  const isLast = fitting === measured.length && fitting < page.limit;
  const next = isLast ? null : String(rows.at(-1)?.["question_no"]);
  return { items, next, count: Number(countRow?.["count"]) };

  function addCondition(condition: string, value: SqlValue): void {
    conditions.push(condition);
    values.push(value);
  }
}

function toWhereClause(conditions: readonly string[]): string {
  return conditions.length === 0 ? "" : `where ${conditions.join(" and ")}`;
}

function* toQuestion(row: Row, knownParents: Map<string, Row | undefined>): Work<Question> {
  return {
    run_id: fromColumn(String(row["run_id"])),
    request_id: fromColumn(String(row["request_id"])),
    attempt: Number(row["attempt"]),
    agent_name: fromColumn(String(row["agent_name"])),
    session_id: textOrNull(row["session_id"]),
    created_by: fromColumn(String(row["created_by"])),
    parents: yield* readParents(row["parent_run_id"], knownParents),
    tool: fromColumn(String(row["tool"])),
    input: JSON.parse(String(row["input"])) as unknown,
    // Only these values are ever written.
    effect: row["effect"] as Question["effect"],
    // storeQuestions wrote this value from the event's schema.
    input_schema: parseOrNull(row["input_schema"]) as Question["input_schema"],
    asked_at: String(row["asked_at"]),
    expires_at: new Date(Number(row["expires_at"])).toISOString(),
    decision: row["decision"] as Question["decision"],
    answered_by: textOrNull(row["answered_by"]),
    answered_at: textOrNull(row["answered_at"]),
    message: textOrNull(row["message"]),
    edited_input: parseOrNull(row["edited_input"]),
    remember: row["remember"] as Question["remember"],
  };
}

function* readParents(
  parent_run_id: Row[string] | undefined,
  knownParents: Map<string, Row | undefined>,
): Work<Question["parents"]> {
  const parents: Question["parents"] = [];
  for (let next = parent_run_id; typeof next === "string" && parents.length < maxParents;) {
    if (!knownParents.has(next)) knownParents.set(next, (yield first(selectParent, next))[0]);
    const row = knownParents.get(next);
    if (row === undefined) break;
    parents.push({ run_id: fromColumn(next), agent_name: fromColumn(String(row["agent_name"])) });
    next = row["parent_run_id"];
  }
  return parents;
}

function parseOrNull(stored: unknown): unknown {
  return typeof stored === "string" ? (JSON.parse(stored) as unknown) : null;
}

const usageGroups = {
  agent: { table: "usage_days", by: ["agent_name"], order: "agent_name" },
  day: { table: "usage_days", by: ["day"], order: "day desc" },
  session: { table: "usage_sessions", by: ["session_id", "agent_name"], order: "session_id desc" },
} as const;

export function* readUsage(filter: Parameters<QuestionReads["usage"]>[0], limit: number): Work<UsageRow[]> {
  const { table, by, order } = usageGroups[filter.by];
  const conditions = [
    ["day >= ?", filter.since],
    ["day < ?", filter.until],
    ["agent_name = ?", filter.agent_name],
    ["created_by = ?", filter.created_by],
  ].filter((pair): pair is [string, string] => pair[1] !== undefined);
  const text = `
  select ${by.join(", ")}, sum(runs) as runs, sum(turns) as turns, sum(input_tokens) as input_tokens,
    sum(output_tokens) as output_tokens, sum(cost_usd) as cost_usd
  from ${table} ${toWhereClause(conditions.map(([condition]) => condition))} group by ${by.join(", ")} order by ${order} limit ?`;
  const rows = yield all(text, ...conditions.map(([, value]) => toColumn(value)), limit);
  return rows.map((row) => ({
    agent_name: textOrNull(row["agent_name"]),
    day: textOrNull(row["day"]),
    session_id: textOrNull(row["session_id"]),
    runs: Number(row["runs"]),
    turns: Number(row["turns"]),
    input_tokens: Number(row["input_tokens"]),
    output_tokens: Number(row["output_tokens"]),
    cost_usd: row["cost_usd"] === null ? null : Number(row["cost_usd"]),
  }));
}
