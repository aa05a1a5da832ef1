import { type FSWatcher, watch } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { AgentGate } from "./agent-gate.ts";
import { isAgentFile, type LoadedAgent, loadAgents, type LoadedAgents } from "./load-agents.ts";
import { errorCode } from "./error-code.ts";
import type { SchemaChecker } from "./json-schema/checker.ts";

export interface AgentsWatch {
  /** `onChange` is not called again after this resolves. Idempotent. */
  stop(): Promise<void>;
}

/** Editors write a file in several steps. */
const settleMs = 50;
/** For changes the kernel does not report: on network file systems, behind links, in a directory that was removed and came back. */
const pollMs = 1000;

/**
 * Calls `onChange` with the agents of the directory (or of a single fleet file), and again each time they change. A file
 * that was valid once, here or in `loadedBefore`, keeps its last valid definition until it is valid again or removed. The
 * gate decides which definitions are used. `onChange` must not throw. A missing directory is reported as a fault, and
 * loaded when it appears.
 */
export function watchAgents(
  directory: string,
  schemas: SchemaChecker,
  onChange: (loaded: LoadedAgents) => void | Promise<void>,
  signal: AbortSignal,
  { loadedBefore = [], gate }: { loadedBefore?: readonly LoadedAgent[]; gate?: AgentGate | undefined } = {},
): AgentsWatch {
  let before = loadedBefore;
  let referenced: readonly string[] = [];
  let watcher: FSWatcher | undefined;
  let watched = "";
  let seen = "";
  let lastReported: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let hinted = true;

  const refresh = async (): Promise<void> => {
    const state = await fingerprint(directory, referenced);
    if (state.directory !== watched || watcher === undefined) renewWatcher(state.directory);
    const now = `${state.all}\n${gate?.state() ?? ""}`;
    const changed = hinted || now !== seen;
    hinted = false;
    seen = now;
    if (!changed) return;
    const found = await loadAgents(directory, schemas, before);
    before = found.agents;
    referenced = found.referenced;
    const loaded = gate?.admit(found) ?? found;
    const text = JSON.stringify(loaded);
    if (stopped || text === lastReported) return;
    lastReported = text;
    await onChange(loaded);
  };

  const renewWatcher = (directoryId: string): void => {
    watcher?.close();
    watcher = undefined;
    watched = directoryId;
    if (directoryId === "") return;
    try {
      watcher = watch(directory, { persistent: false }, hint);
      watcher.on("error", () => {
        watcher?.close();
        watcher = undefined;
      });
    } catch (error) {
      // removed again, or the kernel is out of watches: polling still notices changes
      errorCode(error);
    }
  };

  const hint = (): void => {
    if (hinted) return; // the delay starts with the first hint, so a directory that changes constantly is still read
    hinted = true;
    schedule(settleMs);
  };

  let refreshing: Promise<void> = Promise.resolve();
  let busy = false;
  const schedule = (ms: number): void => {
    clearTimeout(timer);
    if (stopped || busy) return;
    timer = setTimeout(go, ms);
    timer.unref();
  };
  const go = (): void => {
    busy = true;
    refreshing = refresh().finally(() => {
      busy = false;
      schedule(hinted ? settleMs : pollMs);
    });
  };

  const stop = async (): Promise<void> => {
    stopped = true;
    clearTimeout(timer);
    watcher?.close();
    watcher = undefined;
    signal.removeEventListener("abort", onAbort);
    await refreshing;
  };
  const onAbort = (): void => void stop();
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) stopped = true;
  else go();
  return { stop };
}

/**
 * A cheap summary of names, sizes and times. The directory's inode shows that it was removed and recreated. `referenced`
 * are files elsewhere that fleet files refer to.
 */
async function fingerprint(
  directory: string,
  referenced: readonly string[],
): Promise<{ directory: string; all: string }> {
  try {
    const found = await stat(directory);
    const names = found.isFile() ? [] : (await readdir(directory)).filter(isAgentFile).sort();
    const watched = [...(found.isFile() ? [directory] : names.map((name) => join(directory, name))), ...referenced];
    const files = await Promise.all(watched.map(fileState));
    return { directory: `${found.dev}:${found.ino}`, all: `${found.dev}:${found.ino}\n${files.join("\n")}` };
  } catch (error) {
    return { directory: "", all: errorCode(error) };
  }
}

async function fileState(file: string): Promise<string> {
  try {
    const { ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return `${file} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch (error) {
    return `${file} ${errorCode(error)}`;
  }
}
