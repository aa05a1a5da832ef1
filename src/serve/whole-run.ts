import type { Run } from "../model/run.ts";
import type { Store } from "../model/store.ts";
import { notFound } from "./refusal.ts";

/** With its parameters, prompt and result, which authorizing a request does not read. */
export async function wholeRun(read: Pick<Store["read"], "run">, run_id: string): Promise<Run> {
  const run = await read.run(run_id);
  if (run === null) throw notFound("run", "path.run_id");
  return run;
}
