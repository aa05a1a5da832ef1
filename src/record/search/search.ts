import { HostError } from "../../model/errors.ts";
import type { Page, Reads, RunFilter } from "../../model/store.ts";
import type { Engine } from "../engine.ts";
import { indexEvents, indexIsBehind } from "./index-events.ts";
import { searchRuns } from "./search-runs.ts";

/** Batches that a search indexes itself, a few thousand events. The coordinator indexes the rest. */
const maxBatches = 20;

export async function search(
  engine: Engine,
  canIndex: boolean,
  text: string,
  filter: RunFilter,
  page: Page,
): ReturnType<Reads["search"]> {
  const indexed = canIndex ? await indexEvents(engine, maxBatches) : (await indexIsBehind(engine)) ? "behind" : "done";
  if (indexed === "unavailable") throw createUnavailableError(engine);
  return { ...(await searchRuns(engine, text, filter, page)), indexing: indexed === "behind" };
}

function createUnavailableError({ name }: Engine): HostError {
  return new HostError({
    code: "DROVER-STA-007",
    field: name,
    message: `The SQLite in Node ${process.versions.node} cannot search: it was built without FTS5.`,
    next: "Reinstall Drover on this machine (npm install) to get a SQLite that can search. Everything else works.",
  });
}
