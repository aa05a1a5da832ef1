/** How many rows are scanned, because no index finds an id by its end. People shorten mostly the ids of recent objects. */
const windowSize = 100_000;

/** Builds a condition on the end of an id among the newest rows, with one value: `%` and the suffix. */
export function buildSuffixCondition(table: "runs" | "sessions", column: string): string {
  const oldest = `select ${column} from ${table} order by ${column} desc limit 1 offset ${windowSize}`;
  return `${table}.${column} like ? and ${table}.${column} >= coalesce((${oldest}), '')`;
}
