import type { Execution, Store } from "../../model/store.ts";
import { ownerIsAlive } from "./owner.ts";

/** Executions whose Drover died before it could write their end. Costs one small query if there are none. */
export async function findInterruptedExecutions(store: Pick<Store, "read">): Promise<Execution[]> {
  const interrupted: Execution[] = [];
  let before: string | undefined;
  for (;;) {
    const page = await store.read.executions(
      { open: true },
      { limit: pageSize, ...(before === undefined ? {} : { before }) },
    );
    interrupted.push(...page.filter((execution) => !ownerIsAlive(execution.start.owner)));
    before = page.at(-1)?.start.execution_id;
    if (before === undefined || page.length < pageSize) return interrupted;
  }
}

const pageSize = 500;
