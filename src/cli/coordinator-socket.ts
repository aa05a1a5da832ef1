import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { directoryFault } from "../model/ownership.ts";
import { socketDirectoryFile } from "../model/state-layout.ts";
import { maxSocketPathBytes } from "../wire/address.ts";
import { tryWrite } from "./io.ts";

/**
 * Where a coordinator listens for this user's commands and runners: beside its record, or where that path is too long
 * for a socket, in a folder that nobody else can write to. The clients check that as well.
 */
export function socketFor(
  record: string,
  env: Readonly<Record<string, string | undefined>>,
  temporary = "/tmp",
): string | null {
  const beside = join(record, "sock");
  if (fits(beside)) return beside;
  // of the record, as a copy of it would know the same folder
  const name = `${createHash("sha256").update(realpathSync(record)).digest("hex").slice(0, 12)}.sock`;
  const runtime = env["XDG_RUNTIME_DIR"];
  const inRuntime = runtime?.startsWith("/") ? join(runtime, "drover") : null;
  if (inRuntime !== null && fits(join(inRuntime, name)) && makePrivate(inRuntime)) return join(inRuntime, name);
  const folder = rememberedFolder(record, temporary) ?? newFolder(record, temporary);
  return folder !== null && fits(join(folder, name)) ? join(folder, name) : null;
}

function fits(path: string): boolean {
  return Buffer.byteLength(path) <= maxSocketPathBytes;
}

/** false where it cannot be made, or is somebody else's. */
function makePrivate(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return isPrivate(folder);
  } catch (error) {
    if (error instanceof Error && "code" in error) return false;
    throw error;
  }
}

function isPrivate(folder: string): boolean {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  return found !== undefined && directoryFault(folder, found) === null;
}

/** The same as at the last start: runners find their coordinator again by the path that they know. */
function rememberedFolder(record: string, temporary: string): string | null {
  try {
    const folder = readFileSync(socketDirectoryFile(record), "utf8").trim();
    return dirname(folder) === temporary && isPrivate(folder) ? folder : null;
  } catch (error) {
    if (error instanceof Error && "code" in error) return null;
    throw error;
  }
}

/** Anybody may make folders there, so its name is one that nobody can foresee. null where none can be made. */
function newFolder(record: string, temporary: string): string | null {
  try {
    const folder = mkdtempSync(join(temporary, "drover-"));
    writeFileSync(socketDirectoryFile(record), `${folder}\n`, { mode: 0o600 });
    return folder;
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    tryWrite(2, `drover: commands use the port, as no folder for a socket can be made: ${error.message}\n`);
    return null;
  }
}
