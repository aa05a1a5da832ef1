import type { SearchTerm } from "../../model/search-terms.ts";
import { all, write } from "../query.ts";
import type { SearchStatements } from "../search/statements.ts";

/** The words are passed as ready-made lexemes, so the server's parser does not split them again. */
export const searchStatements: SearchStatements = {
  available: null,
  exists: null,
  create: null,
  put: (run_no, seq, words) =>
    write(
      `insert into run_search (run_no, seq, words)
       select ?1::bigint, ?2::bigint, ?3::tsvector where exists (select 1 from runs where run_no = ?1::bigint)
       on conflict (run_no, seq) do update set words = excluded.words`,
      run_no,
      seq,
      words.map((word, index) => `'${word}':${index + 1}`).join(" "),
    ),
  remove: `delete from run_search where run_no = ?`,
  removeEvents: `delete from run_search where run_no = ? and seq > 0`,
  // Materialized: otherwise a search for a rare word would scan the newest rows one by one until enough of them match.
  find: (terms, before, limit) =>
    all(
      `with found as materialized (select run_no, seq from run_search where words @@ ?2::tsquery and run_no < ?1)
       select run_no, seq from found order by run_no desc, seq desc limit ?3`,
      before,
      terms.map(toTsQuery).join(" & "),
      limit,
    ),
};

function toTsQuery({ words, prefix }: SearchTerm): string {
  return `(${words.map((word, index) => `'${word}'${prefix && index === words.length - 1 ? ":*" : ""}`).join(" <-> ")})`;
}
