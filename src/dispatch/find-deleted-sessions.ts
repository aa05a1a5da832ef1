import type { RunnerPort } from "../model/runner-port.ts";
import type { Store } from "../model/store.ts";
import { toPortError } from "./poll.ts";

/** Returns the sessions that no longer exist. Throws if the runner is not registered. */
export async function findDeletedSessions(
  { runner_id, epoch, session_ids }: Parameters<RunnerPort["sessions"]>[0],
  owner: string | undefined,
  { read }: Pick<Store, "read">,
): Promise<{ gone: string[] }> {
  const runner = await read.runner(runner_id);
  if (runner === null || runner.status === "lost" || (owner !== undefined && runner.owner !== owner))
    throw toPortError("unknown_runner");
  if (runner.epoch !== epoch) throw toPortError("old_epoch");
  return { gone: await read.deleted_sessions(session_ids) };
}
