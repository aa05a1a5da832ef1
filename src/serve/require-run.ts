import type { Run } from "../model/run.ts";
import type { Store } from "../model/store.ts";
import { notFound } from "./refusal.ts";

/** Reads a run with its parameters, prompt and result, which authorizing the request did not load. */
export async function requireRun(read: Pick<Store["read"], "run">, run_id: string): Promise<Run> {
  const run = await read.run(run_id);
  if (run === null) throw notFound("run", "path.run_id");
  return run;
}
