import { type SearchTerm, parseSearchTerms } from "../../model/search-terms.ts";
import type { FoundRun, Page, RunFilter } from "../../model/store.ts";
import type { Engine } from "../engine.ts";
import { toRunRow, selectRuns } from "../moves/run-columns.ts";
import { all, type Row, type Work } from "../query.ts";
import { buildRunConditions } from "../reads/runs.ts";
import { readTexts } from "./documents.ts";
import { findMatch } from "./excerpt.ts";
import { indexExists } from "./index-events.ts";

/** Documents scanned per request. The next request continues from the cursor. */
const maxScanned = 5000;
const hitsPerPage = 500;
const runsPerPage = 50;
/** Items per page. Each item needs another read for its excerpt. */
const maxItems = 100;
/** Greater than every run number. */
const maxRunNo = 2 ** 39;

export interface SearchPage {
  items: FoundRun[];
  next: string | null;
}

export async function searchRuns(engine: Engine, text: string, filter: RunFilter, page: Page): Promise<SearchPage> {
  const terms = parseSearchTerms(text);
  if (terms.length === 0 || !(await indexExists(engine))) return { items: [], next: null };
  const limit = Math.min(page.limit, maxItems);
  const items: FoundRun[] = [];
  let beforeRunNo = page.before === undefined ? maxRunNo : Number(page.before);
  for (let scanned = 0; scanned < maxScanned;) {
    const hits = await engine.read(() => findHits(engine, terms, beforeRunNo));
    scanned += hits.documents;
    for (let from = 0; from < hits.runs.length; from += runsPerPage) {
      const batch = hits.runs.slice(from, from + runsPerPage);
      const rows = await engine.read(() => readMatching(batch, filter));
      for (const { run_no, seq } of batch) {
        beforeRunNo = run_no;
        const row = rows.get(run_no);
        if (row === undefined) continue;
        items.push(await engine.read(() => addMatch(row, run_no, seq, terms)));
        if (items.length === limit) return { items, next: String(beforeRunNo) };
      }
    }
    if (hits.documents < hitsPerPage) return { items, next: null };
  }
  return { items, next: String(beforeRunNo) };
}

interface Hit {
  run_no: number;
  seq: number;
}

/** Returns one hit per run: the run's own document if it matches, otherwise its first matching tool input. */
function* findHits(
  { search }: Engine,
  terms: readonly SearchTerm[],
  beforeRunNo: number,
): Work<{ documents: number; runs: Hit[] }> {
  const rows = yield search.find(terms, beforeRunNo, hitsPerPage);
  const runs = new Map<number, Hit>();
  for (const row of rows) {
    const hit = { run_no: Number(row["run_no"]), seq: Number(row["seq"]) };
    runs.set(hit.run_no, hit);
  }
  return { documents: rows.length, runs: [...runs.values()] };
}

const placeholders = Array.from({ length: runsPerPage }, () => "?").join(", ");

/** Reads those runs that match the filter, by run number. */
function* readMatching(hits: readonly Hit[], filter: RunFilter): Work<ReadonlyMap<number, Row>> {
  const { conditions, values } = buildRunConditions(filter, {});
  const numbers = Array.from({ length: runsPerPage }, (_, index) => hits[index]?.run_no ?? 0);
  const where = [`run_no in (${placeholders})`, ...conditions].join(" and ");
  const rows = yield all(`${selectRuns} where ${where}`, ...numbers, ...values);
  return new Map(rows.map((row) => [Number(row["run_no"]), row]));
}

function* addMatch(row: Row, run_no: number, seq: number, terms: readonly SearchTerm[]): Work<FoundRun> {
  const match = findMatch(yield* readTexts(run_no, seq), terms) ?? {
    where: seq === 0 ? "prompt" : "tool_input",
    excerpt: "",
  };
  return { ...toRunRow(row), match: { ...match, seq: seq === 0 ? null : seq } };
}
