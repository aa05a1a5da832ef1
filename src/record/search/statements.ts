import type { SearchTerm } from "../../model/search-terms.ts";
import type { Query } from "../query.ts";

/**
 * How an engine keeps and asks its index. A document is the words of a run (`seq` 0) or of one tool input (the `seq` of its
 * event). Words are those of wordsOf, so that both engines find the same.
 */
export interface SearchStatements {
  /** A row where this engine can search at all; null: it always can. */
  available: string | null;
  /** A row where the index is there; null: the schema has it. */
  exists: string | null;
  /** Makes it where it is not. */
  create: string | null;
  /** In place of the document that was there; nothing where the run is gone. */
  put(run_no: number, seq: number, words: readonly string[]): Query;
  /** Of a run: all documents, or those of its events. */
  remove: string;
  removeOfEvents: string;
  /** Documents (`run_no`, `seq`) that have all terms, of runs before this one, newest first. */
  find(terms: readonly SearchTerm[], before: number, limit: number): Query;
}
