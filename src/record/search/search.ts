import { HostError } from "../../model/errors.ts";
import type { Page, Reads, RunFilter } from "../../model/store.ts";
import type { Engine } from "../engine.ts";
import { indexEvents, isBehind } from "./index-events.ts";
import { searchRuns } from "./search-runs.ts";

/** Batches that a search indexes itself, a few thousand events. The coordinator indexes the rest. */
const mostPortions = 20;

export async function search(
  engine: Engine,
  mayIndex: boolean,
  text: string,
  filter: RunFilter,
  page: Page,
): ReturnType<Reads["search"]> {
  const indexed = mayIndex ? await indexEvents(engine, mostPortions) : (await isBehind(engine)) ? "behind" : "done";
  if (indexed === "unavailable") throw noSearch(engine);
  return { ...(await searchRuns(engine, text, filter, page)), indexing: indexed === "behind" };
}

function noSearch({ name }: Engine): HostError {
  return new HostError({
    code: "DROVER-STA-007",
    field: name,
    message: `The SQLite in Node ${process.versions.node} cannot search: it was built without FTS5.`,
    next: "Reinstall Drover on this machine (npm install) to get a SQLite that can search. Everything else works.",
  });
}
