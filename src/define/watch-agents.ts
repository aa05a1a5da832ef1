import { type FSWatcher, watch } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { AgentGate } from "./agent-gate.ts";
import { isAgentFile, type LoadedAgent, loadAgents, type LoadedAgents } from "./load-agents.ts";
import { requireErrorCode } from "./error-code.ts";
import type { SchemaChecker } from "./json-schema/checker.ts";

export interface AgentsWatch {
  /** `onChange` is not called again after this resolves. Idempotent. */
  stop(): Promise<void>;
}

/** How long to wait for further changes: editors write a file in several steps. */
const settleMs = 50;
/**
 * Polling finds changes that the kernel does not report: on network file systems, behind links, in a recreated directory.
 */
const pollIntervalMs = 1000;

/**
 * Calls `onChange` with the agents of the directory (or of a single fleet file), and again each time they change. A file
 * that was valid once, here or in `loadedBefore`, keeps its last valid definition until it is valid again or removed. The
 * gate decides which definitions are used. `onChange` must not throw. A missing directory is reported as a fault, and
 * loaded once it exists.
 */
export function watchAgents(
  directory: string,
  schemas: SchemaChecker,
  onChange: (loaded: LoadedAgents) => void | Promise<void>,
  signal: AbortSignal,
  { loadedBefore = [], gate }: { loadedBefore?: readonly LoadedAgent[]; gate?: AgentGate | undefined } = {},
): AgentsWatch {
  let previous = loadedBefore;
  let referenced: readonly string[] = [];
  let watcher: FSWatcher | undefined;
  let watchedId = "";
  let lastFingerprint = "";
  let lastReported: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let isStale = true;

  const refresh = async (): Promise<void> => {
    const state = await computeFingerprint(directory, referenced);
    if (state.directory !== watchedId || watcher === undefined) renewWatcher(state.directory);
    const now = `${state.all}\n${gate?.getVersion() ?? ""}`;
    const changed = isStale || now !== lastFingerprint;
    isStale = false;
    lastFingerprint = now;
    if (!changed) return;
    const current = await loadAgents(directory, schemas, previous);
    previous = current.agents;
    referenced = current.referenced;
    const loaded = gate?.admit(current) ?? current;
    const text = JSON.stringify(loaded);
    if (stopped) return;
    if (text !== lastReported) {
      lastReported = text;
      await onChange(loaded);
    }
    gate?.confirm();
  };

  const renewWatcher = (directoryId: string): void => {
    watcher?.close();
    watcher = undefined;
    watchedId = directoryId;
    if (directoryId === "") return;
    try {
      watcher = watch(directory, { persistent: false }, markStale);
      watcher.on("error", () => {
        watcher?.close();
        watcher = undefined;
      });
    } catch (error) {
      // The directory was removed, or the kernel is out of watches. Polling still notices changes.
      requireErrorCode(error);
    }
  };

  const markStale = (): void => {
    if (isStale) return; // The delay starts with the first change, so that a directory that changes constantly is still read.
    isStale = true;
    schedule(settleMs);
  };

  let refreshing: Promise<void> = Promise.resolve();
  let isRefreshing = false;
  const schedule = (ms: number): void => {
    clearTimeout(timer);
    if (stopped || isRefreshing) return;
    timer = setTimeout(startRefresh, ms);
    timer.unref();
  };
  const startRefresh = (): void => {
    isRefreshing = true;
    refreshing = refresh().finally(() => {
      isRefreshing = false;
      schedule(isStale ? settleMs : pollIntervalMs);
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
  else startRefresh();
  return { stop };
}

/**
 * A cheap summary of names, sizes and times. The directory's inode shows that it was removed and recreated. `referenced`
 * are files elsewhere that fleet files refer to.
 */
async function computeFingerprint(
  directory: string,
  referenced: readonly string[],
): Promise<{ directory: string; all: string }> {
  try {
    const stats = await stat(directory);
    const names = stats.isFile() ? [] : (await readdir(directory)).filter(isAgentFile).sort();
    const paths = [...(stats.isFile() ? [directory] : names.map((name) => join(directory, name))), ...referenced];
    const files = await Promise.all(paths.map(describeFileState));
    return { directory: `${stats.dev}:${stats.ino}`, all: `${stats.dev}:${stats.ino}\n${files.join("\n")}` };
  } catch (error) {
    return { directory: "", all: requireErrorCode(error) };
  }
}

async function describeFileState(file: string): Promise<string> {
  try {
    const { ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return `${file} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch (error) {
    return `${file} ${requireErrorCode(error)}`;
  }
}
