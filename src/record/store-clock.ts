import { BugError } from "../model/errors.ts";
import { first, type Work } from "./query.ts";
import type { RecordStore } from "./record-store.ts";

const selectNow = `select floor(extract(epoch from clock_timestamp()) * 1000) as now`;

/** What time it is for this record. Of a fleet's that is the database's: one coordinator's clock may be far off. */
export async function clockOf({ engine, now }: Pick<RecordStore, "engine" | "now">): Promise<Date> {
  return engine.kind === "postgres" ? new Date(await engine.read(askDatabase)) : now();
}

function* askDatabase(): Work<number> {
  const [row] = yield first(selectNow);
  if (row === undefined) throw new BugError("the database gave no time");
  return Number(row["now"]);
}
