import { type FSWatcher, watch } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { AgentGate } from "./agent-gate.ts";
import { isAgentFile, type LoadedAgent, loadAgents, type LoadedAgents } from "./load-agents.ts";
import { errorCode } from "./error-code.ts";
import type { SchemaChecker } from "./json-schema/checker.ts";

export interface AgentsWatch {
  /** After it resolves `onChange` is not called again. Idempotent. */
  stop(): Promise<void>;
}

/** Editors write a file in several goes. */
const settleMs = 50;
/** For what the kernel does not tell: network folders, links, a folder that was away for a while. */
const pollMs = 1000;

/**
 * Calls `onChange` with what the folder, or the fleet file in its place, holds now, and again each time that becomes something else. A file that was
 * sound once (here or in `loadedBefore`) keeps its last sound definition until it is sound again or removed. The gate
 * decides which of them are used.
 * It must not throw. A folder that is missing holds nothing but a fault; it is noticed when it comes (back).
 */
export function watchAgents(
  folder: string,
  schemas: SchemaChecker,
  onChange: (loaded: LoadedAgents) => void | Promise<void>,
  signal: AbortSignal,
  { loadedBefore = [], gate }: { loadedBefore?: readonly LoadedAgent[]; gate?: AgentGate | undefined } = {},
): AgentsWatch {
  let before = loadedBefore;
  let others: readonly string[] = [];
  let watcher: FSWatcher | undefined;
  let watched = "";
  let seen = "";
  let told: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let hinted = true;

  const look = async (): Promise<void> => {
    const state = await fingerprint(folder, others);
    if (state.folder !== watched || watcher === undefined) renewWatcher(state.folder);
    const now = `${state.all}\n${gate?.state() ?? ""}`;
    const changed = hinted || now !== seen;
    hinted = false;
    seen = now;
    if (!changed) return;
    const found = await loadAgents(folder, schemas, before);
    before = found.agents;
    others = found.others;
    const loaded = gate?.admit(found) ?? found;
    const text = JSON.stringify(loaded);
    if (stopped || text === told) return;
    told = text;
    await onChange(loaded);
  };

  const renewWatcher = (folderId: string): void => {
    watcher?.close();
    watcher = undefined;
    watched = folderId;
    if (folderId === "") return;
    try {
      watcher = watch(folder, { persistent: false }, hint);
      watcher.on("error", () => {
        watcher?.close();
        watcher = undefined;
      });
    } catch (error) {
      // gone again, or no watches left in the kernel: polling finds what this would have told
      errorCode(error);
    }
  };

  const hint = (): void => {
    if (hinted) return; // counted from the first, so that a folder that never rests is still read
    hinted = true;
    plan(settleMs);
  };

  let looking: Promise<void> = Promise.resolve();
  let busy = false;
  const plan = (ms: number): void => {
    clearTimeout(timer);
    if (stopped || busy) return;
    timer = setTimeout(go, ms);
    timer.unref();
  };
  const go = (): void => {
    busy = true;
    looking = look().finally(() => {
      busy = false;
      plan(hinted ? settleMs : pollMs);
    });
  };

  const stop = async (): Promise<void> => {
    stopped = true;
    clearTimeout(timer);
    watcher?.close();
    watcher = undefined;
    signal.removeEventListener("abort", onAbort);
    await looking;
  };
  const onAbort = (): void => void stop();
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) stopped = true;
  else go();
  return { stop };
}

/**
 * Cheap to take: names, sizes and times. The folder's own identity tells that it was removed and made anew. `others` are
 * files elsewhere that the ones of the folder name.
 */
async function fingerprint(folder: string, others: readonly string[]): Promise<{ folder: string; all: string }> {
  try {
    const found = await stat(folder);
    const names = found.isFile() ? [] : (await readdir(folder)).filter(isAgentFile).sort();
    const watched = [...(found.isFile() ? [folder] : names.map((name) => join(folder, name))), ...others];
    const files = await Promise.all(watched.map(fileState));
    return { folder: `${found.dev}:${found.ino}`, all: `${found.dev}:${found.ino}\n${files.join("\n")}` };
  } catch (error) {
    return { folder: "", all: errorCode(error) };
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
