import type { SearchTerm } from "../../model/search-terms.ts";
import type { Query } from "../query.ts";

/**
 * How an engine stores and queries its full-text index. A document holds the words of a run (`seq` 0) or of one tool input
 * (the `seq` of its event). extractWords splits the words, so both engines find the same.
 */
export interface SearchStatements {
  /** Returns a row if this engine supports search; null if it always does. */
  available: string | null;
  /** Returns a row if the index exists; null if it is part of the schema. */
  exists: string | null;
  /** Creates the index if it does not exist. */
  create: string | null;
  /** Replaces the document. Does nothing if the run no longer exists. */
  put(run_no: number, seq: number, words: readonly string[]): Query;
  /** Removes all documents of a run. */
  remove: string;
  /** Removes the documents of a run's events. */
  removeEvents: string;
  /** Documents (`run_no`, `seq`) that contain all terms, of runs before this one, newest first. */
  find(terms: readonly SearchTerm[], before: number, limit: number): Query;
}
