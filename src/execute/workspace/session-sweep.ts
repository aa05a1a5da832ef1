import { dirname, join } from "node:path";
import type { RunnerPort } from "../../model/runner-port.ts";
import { sleep } from "../port/backoff.ts";
import type { Identity } from "../port/identity.ts";
import { classifyPortError } from "../port/port-failure.ts";
import { removeNonDirectories } from "./private-directory.ts";
import { removeTree } from "./remove-tree.ts";
import { listMarkedSessions, type SessionOwner, unmarkSession } from "./session-marks.ts";

export interface SessionSweepOptions {
  port: RunnerPort;
  identity: Identity;
  /** Directories that contain one directory for each session, named by its id. */
  roots: readonly string[];
  /** Sessions in use are not removed, even if the coordinator reports them as deleted. */
  isUsed: (session_id: string) => boolean;
  everyMs: number;
  onNotice: (message: string, cause?: unknown) => void;
}

const batchSize = 200;

/**
 * Removes the directories of deleted sessions at once, and again every `everyMs`. Considers only directories that are
 * marked for this coordinator's record, because it does not know the sessions of other records.
 */
export function startSessionSweep(options: SessionSweepOptions): { stop(): Promise<void> } {
  const stopController = new AbortController();
  async function run(): Promise<void> {
    while (!stopController.signal.aborted) {
      await sweepOnce(options, stopController.signal).catch((error: unknown) => {
        if (!stopController.signal.aborted)
          options.onNotice("the directories of deleted sessions could not be removed", error);
      });
      await sleep(options.everyMs, stopController.signal);
    }
  }
  const running = run();
  return {
    async stop() {
      stopController.abort();
      await running;
    },
  };
}

async function sweepOnce(
  { port, identity, roots, isUsed, onNotice }: SessionSweepOptions,
  signal: AbortSignal,
): Promise<void> {
  const registration = await identity.current();
  const { runner_id, epoch, store_id } = registration;
  const marks = await Promise.all(
    roots.map(async (root) =>
      (await listMarkedSessions(root, registration)).map((session_id) => ({ root, session_id })),
    ),
  );
  const directories = marks.flat();
  const ids = [...new Set(directories.map(({ session_id }) => session_id))];
  for (let index = 0; index < ids.length && !signal.aborted; index += batchSize) {
    const session_ids = ids.slice(index, index + batchSize);
    const response = await port.sessions({ runner_id, epoch, session_ids }).catch((error: unknown) => {
      // Polls and reports already report an outage; the next sweep tries again.
      if (classifyPortError(error) === "refused") throw error;
      return null;
    });
    // The response may come from another record that now has the same address.
    if (response === null || (await identity.waitForRenewal()).store_id !== store_id) return;
    const deletedIds = new Set(response.gone);
    for (const { root, session_id } of directories) {
      if (!session_ids.includes(session_id) || !deletedIds.has(session_id) || isUsed(session_id)) continue;
      await removeSessionDirectory(root, session_id, registration).catch((error: unknown) =>
        onNotice(`the directory of session ${session_id} could not be removed`, error),
      );
    }
  }
}

/** Removes a session's directory, an unfinished copy of it, and its mark. */
export async function removeSessionDirectory(root: string, session_id: string, owner: SessionOwner): Promise<void> {
  removeNonDirectories(dirname(root), root);
  const path = join(root, session_id);
  await removeTree(dirname(root), path);
  await removeTree(dirname(root), `${path}.copy`); // A runner that died during the copy left it.
  await unmarkSession(root, session_id, owner);
}
