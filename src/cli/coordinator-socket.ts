import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { checkDirectory } from "../model/ownership.ts";
import { socketDirectoryFile } from "../model/state-layout.ts";
import type { Environment } from "../model/environment.ts";
import { maxSocketPathBytes } from "../wire/address.ts";
import { tryWrite } from "./io.ts";

/**
 * Chooses the path of the socket on which a coordinator listens for this user's commands and runners. The socket is in the
 * record or, if that path is too long for a socket, in a private directory. Clients check that the directory is private.
 * Returns null if there is no such directory.
 */
export function chooseSocketPath(record: string, env: Environment, temporary = "/tmp"): string | null {
  const pathInRecord = join(record, "sock");
  if (fits(pathInRecord)) return pathInRecord;
  // The name depends on the record's path, because a copy of the record contains the same socket directory file.
  const name = `${createHash("sha256").update(realpathSync(record)).digest("hex").slice(0, 12)}.sock`;
  const runtime = env["XDG_RUNTIME_DIR"];
  const runtimeDirectory = runtime?.startsWith("/") ? join(runtime, "drover") : null;
  if (runtimeDirectory !== null && fits(join(runtimeDirectory, name)) && ensurePrivate(runtimeDirectory))
    return join(runtimeDirectory, name);
  const directory = readRememberedDirectory(record, temporary) ?? createDirectory(record, temporary);
  return directory !== null && fits(join(directory, name)) ? join(directory, name) : null;
}

function fits(path: string): boolean {
  return Buffer.byteLength(path) <= maxSocketPathBytes;
}

/** Creates the directory if it is missing. Returns false if that fails, or if other users can write to it. */
function ensurePrivate(directory: string): boolean {
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

/** Creates a directory with a random name, because every user can create directories there. Returns null if that fails. */
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
