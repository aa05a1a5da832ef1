import { all, write } from "../query.ts";
import type { SearchStatements } from "../search/statements.ts";

/** A rowid is run_no * seqsPerRun + seq, so no other table is needed. A log of 256 MB has fewer events than this. */
const seqsPerRun = 8_388_608;
const rowid = `cast(?1 as integer) * ${seqsPerRun}`;

/** A contentless index stores no copy of the text. */
export const searchStatements: SearchStatements = {
  available: `select 1 as yes from pragma_module_list where name = 'fts5'`,
  exists: `select 1 as yes from sqlite_master where type = 'table' and name = 'run_search'`,
  create: `
    create virtual table if not exists run_search
    using fts5(words, content = '', contentless_delete = 1, tokenize = 'ascii')`,
  put: (run_no, seq, words) =>
    write(
      `insert or replace into run_search (rowid, words)
       select ${rowid} + cast(?2 as integer), ?3 where exists (select 1 from runs where run_no = ?1)`,
      run_no,
      seq,
      words.join(" "),
    ),
  remove: `delete from run_search where rowid >= ${rowid} and rowid < ${rowid} + ${seqsPerRun}`,
  removeEvents: `delete from run_search where rowid > ${rowid} and rowid < ${rowid} + ${seqsPerRun}`,
  find: (terms, before, limit) =>
    all(
      `select rowid >> 23 as run_no, rowid & ${seqsPerRun - 1} as seq from run_search
       where run_search match ?2 and rowid < ${rowid} order by rowid desc limit ?3`,
      before,
      terms.map(({ words, prefix }) => `"${words.join(" ")}"${prefix ? "*" : ""}`).join(" AND "),
      limit,
    ),
};
