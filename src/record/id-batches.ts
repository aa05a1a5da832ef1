import { toColumn } from "./text.ts";

/** Ids per statement. All batches have this length, so that they use the same prepared statement. */
const idsPerStatement = 100;

/** The placeholders of one batch, for `in (...)`. */
export const idPlaceholders = Array.from({ length: idsPerStatement }, () => "?").join(", ");

/** Encodes the ids for statements with `idPlaceholders`. The last batch is padded by repeating its first id. */
export function* batchIds(ids: readonly string[]): Generator<string[]> {
  for (let from = 0; from < ids.length; from += idsPerStatement) {
    const batch = ids.slice(from, from + idsPerStatement).map((id) => toColumn(id));
    yield Array.from({ length: idsPerStatement }, (_, index) => batch[index] ?? batch[0]!);
  }
}
