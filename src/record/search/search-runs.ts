import { type SearchTerm, searchTerms } from "../../model/search-terms.ts";
import type { FoundRun, Page, RunFilter } from "../../model/store.ts";
import type { Engine } from "../engine.ts";
import { runFromRow, selectRuns } from "../moves/run-columns.ts";
import { all, type Row, type Work } from "../query.ts";
import { whereRuns } from "../reads/runs.ts";
import { readTexts } from "./documents.ts";
import { matchIn } from "./excerpt.ts";
import { indexExists } from "./index-events.ts";

/** Documents scanned per request. The cursor continues from there. */
const mostScanned = 5000;
const hitsPerPage = 500;
const runsPerPage = 50;
/** Each result is read again for its excerpt. */
const mostItems = 100;
const afterAll = 2 ** 39;

export interface FoundPage {
  items: FoundRun[];
  next: string | null;
}

export async function searchRuns(engine: Engine, text: string, filter: RunFilter, page: Page): Promise<FoundPage> {
  const terms = searchTerms(text);
  if (terms.length === 0 || !(await indexExists(engine))) return { items: [], next: null };
  const limit = Math.min(page.limit, mostItems);
  const items: FoundRun[] = [];
  let before = page.before === undefined ? afterAll : Number(page.before);
  for (let scanned = 0; scanned < mostScanned;) {
    const hits = await engine.read(() => findHits(engine, terms, before));
    scanned += hits.documents;
    for (let from = 0; from < hits.runs.length; from += runsPerPage) {
      const some = hits.runs.slice(from, from + runsPerPage);
      const rows = await engine.read(() => readMatching(some, filter));
      for (const { run_no, seq } of some) {
        before = run_no;
        const row = rows.get(run_no);
        if (row === undefined) continue;
        items.push(await engine.read(() => withMatch(row, run_no, seq, terms)));
        if (items.length === limit) return { items, next: String(before) };
      }
    }
    if (hits.documents < hitsPerPage) return { items, next: null };
  }
  return { items, next: String(before) };
}

interface Hit {
  run_no: number;
  seq: number;
}

/** Returns one hit per run: the run's own document if it matches, otherwise its first matching tool input. */
function* findHits(
  { search }: Engine,
  terms: readonly SearchTerm[],
  before: number,
): Work<{ documents: number; runs: Hit[] }> {
  const rows = yield search.find(terms, before, hitsPerPage);
  const runs = new Map<number, Hit>();
  for (const row of rows) {
    const hit = { run_no: Number(row["run_no"]), seq: Number(row["seq"]) };
    runs.set(hit.run_no, hit);
  }
  return { documents: rows.length, runs: [...runs.values()] };
}

const marks = Array.from({ length: runsPerPage }, () => "?").join(", ");

/** The runs that match the filter, by number. */
function* readMatching(hits: readonly Hit[], filter: RunFilter): Work<ReadonlyMap<number, Row>> {
  const { conditions, values } = whereRuns(filter, {});
  const numbers = Array.from({ length: runsPerPage }, (_, index) => hits[index]?.run_no ?? 0);
  const where = [`run_no in (${marks})`, ...conditions].join(" and ");
  const rows = yield all(`${selectRuns} where ${where}`, ...numbers, ...values);
  return new Map(rows.map((row) => [Number(row["run_no"]), row]));
}

function* withMatch(row: Row, run_no: number, seq: number, terms: readonly SearchTerm[]): Work<FoundRun> {
  const found = matchIn(yield* readTexts(run_no, seq), terms) ?? {
    where: seq === 0 ? "prompt" : "tool_input",
    excerpt: "",
  };
  return { ...runFromRow(row), match: { ...found, seq: seq === 0 ? null : seq } };
}
