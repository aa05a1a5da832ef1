import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { RunnerPort } from "../../model/runner-port.ts";
import { sleep } from "../backoff.ts";
import type { Identity } from "../identity.ts";
import { portFault } from "../port-faults.ts";
import { removeTree } from "./remove-tree.ts";

export interface SessionSweepOptions {
  port: RunnerPort;
  identity: Identity;
  /** Folders in which each entry is named by its session. */
  roots: readonly string[];
  /** Never removed, whatever the coordinator says. */
  isUsed: (session_id: string) => boolean;
  everyMs: number;
  onNotice: (message: string, cause?: unknown) => void;
}

const batch = 200;

/** Removes the folders of sessions that nobody can continue any more: at once, and then every so often. */
export function startSessionSweep(options: SessionSweepOptions): { stop(): Promise<void> } {
  const stopping = new AbortController();
  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await sweepOnce(options, stopping.signal).catch((error: unknown) => {
        if (!stopping.signal.aborted) options.onNotice("folders of sessions that are gone could not be removed", error);
      });
      await sleep(options.everyMs, stopping.signal);
    }
  }
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

async function sweepOnce(
  { port, identity, roots, isUsed, onNotice }: SessionSweepOptions,
  signal: AbortSignal,
): Promise<void> {
  const listed = await Promise.all(roots.map(async (root) => (await namesIn(root)).map((name) => ({ root, name }))));
  const folders = listed.flat();
  const ids = [...new Set(folders.map(({ name }) => sessionOf(name)))];
  for (let at = 0; at < ids.length && !signal.aborted; at += batch) {
    const session_ids = ids.slice(at, at + batch);
    const { runner_id, epoch } = await identity.current();
    const answer = await port.sessions({ runner_id, epoch, session_ids }).catch((error: unknown) => {
      // an outage is told by the lanes that matter more, and the next look comes
      if (portFault(error) === "refused") throw error;
      return null;
    });
    if (answer === null) return;
    const gone = new Set(answer.gone);
    for (const { root, name } of folders) {
      const session_id = sessionOf(name);
      if (!session_ids.includes(session_id) || !gone.has(session_id) || isUsed(session_id)) continue;
      await removeTree(join(root, name)).catch((error: unknown) =>
        onNotice(`the folder of session ${session_id} could not be removed`, error),
      );
    }
  }
}

/** A copy that a runner died over has the name of the session it was for. */
function sessionOf(name: string): string {
  return name.replace(/\.copy$/, "");
}

async function namesIn(root: string): Promise<string[]> {
  try {
    return await readdir(root);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}
