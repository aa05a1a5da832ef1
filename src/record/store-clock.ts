import { BugError } from "../model/errors.ts";
import { first, type Work } from "./query.ts";
import type { RecordStore } from "./record-store.ts";

const selectNow = `select floor(extract(epoch from clock_timestamp()) * 1000) as now`;

/** The current time of this record. A fleet uses the clock of its database, because a coordinator's clock may be far off. */
export async function readStoreClock({ engine, now }: Pick<RecordStore, "engine" | "now">): Promise<Date> {
  return engine.kind === "postgres" ? new Date(await engine.read(readDatabaseClock)) : now();
}

function* readDatabaseClock(): Work<number> {
  const [row] = yield first(selectNow);
  if (row === undefined) throw new BugError("the database returned no time");
  return Number(row["now"]);
}
