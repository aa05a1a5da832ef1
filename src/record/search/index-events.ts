import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import type { Engine } from "../engine.ts";
import { statusIn } from "../moves/statuses.ts";
import { all, first, type Query, write, type Work } from "../query.ts";
import { maxCharacters, readTexts, toToolText, extractWords } from "./documents.ts";

const eventsPerBatch = 200;

const selectProgress = `select indexed_to, (select max(cursor) from events) as last from store`;
const selectEvents = `
  select cursor, run_no, seq, case when body like '{"type":"tool_use"%' then substr(body, 1, ?3) end as tool,
    case when body like '{"type":"result"%' then 1 when seq > 1 then 0
      when exists (select 1 from runs where runs.run_no = events.run_no and ${statusIn("open", "runs.status")}) then 1
      else 0 end as index_run
  from events where cursor > ?1 order by cursor limit ?2`;
const advance = `update store set indexed_to = ?1 where indexed_to = ?2 returning 1 as yes`;

interface Batch {
  from: number;
  to: number;
  documents: { run_no: number; seq: number; words: string[] }[];
}

export type IndexResult = "done" | "behind" | "unavailable";

/**
 * Updates the index in at most `maxBatches` batches. Others can read and write between batches.
 *
 * The index follows the event feed in commit order. A run is indexed when it starts and again when it ends, and so is each
 * tool input. This way writing a run costs nothing extra, and anything not indexed yet (an older record, a copy, a command
 * without a coordinator) is simply later in the feed. All text was redacted when it was stored.
 */
export async function indexEvents(
  engine: Engine,
  maxBatches = Number.POSITIVE_INFINITY,
  signal?: AbortSignal,
): Promise<IndexResult> {
  const { available } = engine.search;
  for (let batches = 0; ; batches += 1) {
    if (!(await indexIsBehind(engine))) return "done";
    if (batches >= maxBatches || signal?.aborted === true) return "behind";
    if (batches === 0 && available !== null && (await engine.read(() => runQuery(first(available)))).length === 0)
      return "unavailable";
    const batch = await engine.read(readBatch);
    // If another process was faster, its batch counts.
    await engine.write(() => storeBatch(engine, batch));
    await yieldToEventLoop();
  }
}

/** Whether the index exists. If not, nothing was ever indexed. */
export async function indexExists(engine: Engine): Promise<boolean> {
  const { exists } = engine.search;
  return exists === null || (await engine.read(() => runQuery(first(exists)))).length > 0;
}

export async function indexIsBehind(engine: Engine): Promise<boolean> {
  const [row] = await engine.read(() => runQuery(first(selectProgress)));
  return Number(row?.["last"] ?? 0) > Number(row?.["indexed_to"]);
}

function* readBatch(): Work<Batch> {
  const [progress] = yield first(selectProgress);
  const from = Number(progress?.["indexed_to"]);
  const events = yield all(selectEvents, from, eventsPerBatch, maxCharacters);
  const documents: Batch["documents"] = [];
  const runs = new Set<number>();
  for (const { run_no: no, seq, tool, index_run } of events) {
    const run_no = Number(no);
    if (index_run === 1) runs.add(run_no);
    if (typeof tool === "string") documents.push({ run_no, seq: Number(seq), words: extractWords([toToolText(tool)]) });
  }
  for (const run_no of runs) documents.push({ run_no, seq: 0, words: extractWords(yield* readTexts(run_no, 0)) });
  return {
    from,
    to: Number(events.at(-1)?.["cursor"] ?? from),
    documents: documents.filter(({ words }) => words.length > 0),
  };
}

function* storeBatch({ search }: Engine, { from, to, documents }: Batch): Work<void> {
  if (search.create !== null) yield write(search.create);
  if ((yield all(advance, to, from)).length === 0) return;
  for (const { run_no, seq, words } of documents) yield search.put(run_no, seq, words);
}

function* runQuery(query: Query): Work<Record<string, unknown>[]> {
  return yield query;
}
