import type { Execution, Store } from "../../model/store.ts";
import { type Owner, isOwnerAlive } from "./owner.ts";

/**
 * Finds the executions whose Drover process died before it could write their end. Costs one small query if there are none.
 * A process that records executions passes itself as `self`, so that its own executions are not checked.
 */
export async function findInterruptedExecutions(
  store: Pick<Store, "read">,
  self: Owner | null = null,
): Promise<Execution[]> {
  const isAlive = (owner: Owner): boolean => (self !== null && isSameOwner(owner, self)) || isOwnerAlive(owner);
  const interrupted: Execution[] = [];
  let before: string | undefined;
  for (;;) {
    const page = await store.read.executions(
      { open: true },
      { limit: pageSize, ...(before === undefined ? {} : { before }) },
    );
    interrupted.push(...page.filter((execution) => !isAlive(execution.start.owner)));
    before = page.at(-1)?.start.execution_id;
    if (before === undefined || page.length < pageSize) return interrupted;
  }
}

const pageSize = 500;

function isSameOwner(one: Owner, other: Owner): boolean {
  return one.pid === other.pid && one.start === other.start && one.host === other.host;
}
