import type { RunEvent, StoredEvent } from "../../../src/model/event.ts";
import type { StoredFile } from "../../../src/model/file.ts";
import type { Run } from "../../../src/model/run.ts";
import { pauseBetweenPolls, type CoordinatorProcess } from "../coordinator-process.ts";

export { listFilesBelow as filesBelow, listRunProcesses as processesOf } from "../../fixtures/e2e/left-over.ts";

type Calls = Pick<CoordinatorProcess, "call">;

export async function submit({ call }: Calls, request: unknown): Promise<Run> {
  const { status, json } = await call<Run>("POST", "/runs", request);
  if (status !== 201) throw new Error(`POST /runs was answered with ${status}: ${JSON.stringify(json)}`);
  return json;
}

export async function show({ call }: Calls, run_id: string): Promise<Run> {
  return (await call<Run>("GET", `/runs/${run_id}`)).json;
}

/** Waits for the run's end. Throws with its state if it does not end in time. */
export async function waitForRunEnd(coordinator: Calls, run_id: string, withinMs = 120_000): Promise<Run> {
  const since = performance.now();
  for (;;) {
    const run = await show(coordinator, run_id);
    if (run.finished_at !== null) return run;
    if (performance.now() > since + withinMs) throw new Error(`The run did not end: ${JSON.stringify(run)}`);
    await pauseBetweenPolls(since);
  }
}

export async function listEvents({ call }: Calls, run_id: string): Promise<RunEvent[]> {
  const { json } = await call<{ items: StoredEvent[] }>("GET", `/runs/${run_id}/events?limit=1000`);
  return json.items.map(({ event }) => event);
}

export async function listFilePaths({ call }: Calls, run_id: string): Promise<string[]> {
  const { json } = await call<{ items: StoredFile[] }>("GET", `/runs/${run_id}/files`);
  return json.items.map(({ path }) => path);
}
