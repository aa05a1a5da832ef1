import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { checkDirectory } from "../model/ownership.ts";
import { socketDirectoryFile } from "../model/state-layout.ts";
import type { Environment } from "../model/environment.ts";
import { maxSocketPathBytes } from "../wire/address.ts";
import { tryWrite } from "./io.ts";

/**
 * The socket on which a coordinator listens for this user's commands and runners. It is next to the record, or if that
 * path is too long for a socket, in a private directory. Clients check that the directory is private, too.
 */
export function chooseSocketPath(record: string, env: Environment, temporary = "/tmp"): string | null {
  const besideRecord = join(record, "sock");
  if (fits(besideRecord)) return besideRecord;
  // The name depends on the record's path, because a copy of the record remembers the same directory.
  const name = `${createHash("sha256").update(realpathSync(record)).digest("hex").slice(0, 12)}.sock`;
  const runtime = env["XDG_RUNTIME_DIR"];
  const runtimeDirectory = runtime?.startsWith("/") ? join(runtime, "drover") : null;
  if (runtimeDirectory !== null && fits(join(runtimeDirectory, name)) && makePrivate(runtimeDirectory))
    return join(runtimeDirectory, name);
  const directory = readRememberedDirectory(record, temporary) ?? createDirectory(record, temporary);
  return directory !== null && fits(join(directory, name)) ? join(directory, name) : null;
}

function fits(path: string): boolean {
  return Buffer.byteLength(path) <= maxSocketPathBytes;
}

/** Returns false if the directory cannot be created or other users can write to it. */
function makePrivate(directory: string): boolean {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    return isPrivate(directory);
  } catch (error) {
    if (error instanceof Error && "code" in error) return false;
    throw error;
  }
}

function isPrivate(directory: string): boolean {
  const stats = lstatSync(directory, { throwIfNoEntry: false });
  return stats !== undefined && checkDirectory(directory, stats) === null;
}

/** Returns the directory of the last start, so that runners can reconnect to the same path. */
function readRememberedDirectory(record: string, temporary: string): string | null {
  try {
    const directory = readFileSync(socketDirectoryFile(record), "utf8").trim();
    return dirname(directory) === temporary && isPrivate(directory) ? directory : null;
  } catch (error) {
    if (error instanceof Error && "code" in error) return null;
    throw error;
  }
}

/** The name is random because every user can create directories there. Returns null if the directory cannot be created. */
function createDirectory(record: string, temporary: string): string | null {
  try {
    const directory = mkdtempSync(join(temporary, "drover-"));
    writeFileSync(socketDirectoryFile(record), `${directory}\n`, { mode: 0o600 });
    return directory;
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    tryWrite(2, `drover: cannot create a directory for the socket, so commands use the port: ${error.message}\n`);
    return null;
  }
}
