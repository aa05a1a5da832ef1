import { BugError } from "../../model/errors.ts";
import type { NumberedEvent, RunEvent } from "../../model/event.ts";
import type { Run } from "../../model/run.ts";
import type { FinishRun, Store } from "../../model/store.ts";

/** How often the events of a long command are saved while it runs. */
const saveEveryMs = 500;

/**
 * Writes the events of a run directly to the store: the first with the run in one transaction, the last with the result
 * in another. A long command also saves its events in between.
 */
export function openStoreSink(run_id: string, store: Pick<Store, "apply">, now: () => Date) {
  let n = 0;
  let unsaved: NumberedEvent[] = [];
  let isCreated = false;
  let timer: NodeJS.Timeout | null = null;
  let lastSave: Promise<void> = Promise.resolve();

  const save = async (): Promise<void> => {
    const [saveResult] = await store.apply([{ op: "append_events", run_id, attempt: 1, events: [...unsaved] }]);
    if (saveResult.ok) unsaved = unsaved.filter((event) => event.n > saveResult.last_n);
  };

  return {
    append(event: RunEvent): void {
      unsaved.push({ n: ++n, at: now().toISOString(), event });
      if (!isCreated) return;
      timer ??= setTimeout(() => {
        timer = null;
        // After a failure the events stay in `unsaved`, and finish() stores them or throws.
        lastSave = lastSave.then(save).catch(() => undefined);
      }, saveEveryMs);
    },
    async create(run: Run): Promise<void> {
      const [createResult] = await store.apply([{ op: "create_run", run, events: unsaved }]);
      if (!createResult.ok) throw new BugError(`A new run could not be recorded: ${createResult.conflict}.`);
      unsaved = [];
      isCreated = true;
    },
    async finish(end: Pick<FinishRun, "at" | "result" | "isolation">): Promise<void> {
      if (timer) clearTimeout(timer);
      await lastSave;
      const [finishResult] = await store.apply([{ op: "finish_run", run_id, attempt: 1, events: unsaved, ...end }]);
      if (!finishResult.ok)
        throw new BugError(`The end of run ${run_id} could not be recorded: ${finishResult.conflict}.`);
    },
  };
}
