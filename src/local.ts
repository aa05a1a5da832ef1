import { closeSync, openSync, readSync } from "node:fs";
import { userInfo } from "node:os";
import { findPlaces, type Places } from "./define/places.ts";
import { type Config, defaultConfig } from "./model/config.ts";
import { createIds, type NewId } from "./model/ids.ts";
import { openStore, type SqliteStore } from "./record/open.ts";

/** Drover without a coordinator: the state directory of this place, opened by this process itself. */
export interface Local {
  places: Places;
  config: Config;
}

export async function findLocal(env: Readonly<Record<string, string | undefined>>, cwd: string): Promise<Local> {
  const places = findPlaces(env, cwd);
  if (!places.configFile) return { places, config: defaultConfig };
  const { loadConfig } = await import("./define/config.ts");
  return { places, config: loadConfig(places.configFile) };
}

export function openLocalStore({ places }: Local): Promise<SqliteStore> {
  return openStore({ directory: places.stateDirectory, now: () => new Date(), createIfMissing: true });
}

export function newLocalIds(): NewId {
  return createIds(Date.now, fillRandom);
}

/** The name behind the user id, so that an environment variable cannot claim another. */
export function localUser(): string {
  try {
    return userInfo().username;
  } catch (error) {
    // a user id without a passwd entry, as in many containers
    if (error instanceof Error) return `uid-${process.getuid?.() ?? "unknown"}`;
    throw error;
  }
}

/** Straight from the kernel: loading node:crypto would cost a tenth of a cold `exec`. */
function fillRandom(bytes: Uint8Array): void {
  const fd = openSync("/dev/urandom", "r");
  try {
    readSync(fd, bytes);
  } finally {
    closeSync(fd);
  }
}
