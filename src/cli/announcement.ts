import { readFileSync } from "node:fs";
import { HostError } from "../model/errors.ts";
import {
  announcementFile,
  recordDirectory,
  runnerTokenFile,
  tokenFile,
  type TokenFileName,
} from "../model/state-layout.ts";
import { checkPrivatePath } from "../wire/private-path.ts";

/** How to reach the coordinator of a state directory. The coordinator writes it there while it serves. */
export interface Announcement {
  url: string;
  /** The path of its Unix socket, which local commands try first. */
  socket: string | null;
  pid: number;
  /** The file next to the announcement that contains the admin token. */
  token_file: TokenFileName;
}

/** Returns null if the announcement is missing or invalid. A serving coordinator always writes a complete one. */
export function readAnnouncement(stateDirectory: string): Announcement | null {
  const announcement = parseJson(readPrivateFile(announcementFile(recordDirectory(stateDirectory))) ?? "");
  if (typeof announcement !== "object" || announcement === null || !("url" in announcement) || !("pid" in announcement))
    return null;
  const { url, pid } = announcement;
  const token_file =
    "token_file" in announcement && announcement.token_file === "fleet-token" ? "fleet-token" : "token";
  const socket = "socket" in announcement && typeof announcement.socket === "string" ? announcement.socket : null;
  if (typeof url !== "string" || !URL.canParse(url)) return null;
  return typeof pid === "number" && Number.isInteger(pid) && pid > 0 ? { url, socket, pid, token_file } : null;
}

/** Reads a token from a file of the record. Returns null if the file is missing or empty. */
export function readStoredToken(stateDirectory: string, name: TokenFileName | "runner-token"): string | null {
  const record = recordDirectory(stateDirectory);
  return readPrivateFile(name === "runner-token" ? runnerTokenFile(record) : tokenFile(record, name))?.trim() || null;
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM: the process exists, but belongs to another user.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/**
 * Reads a file that only this user or root can have written, because it decides which coordinator commands connect to and
 * trust. Returns null if the file does not exist.
 */
function readPrivateFile(path: string): string | null {
  const file = checkPrivatePath(path, "file");
  if (file === null) return null;
  if (file.problem === null) return readFileSync(path, "utf8");
  const { reason, next } = file.problem;
  throw new HostError({ code: "DROVER-API-027", field: path, message: `${path} is not used: ${reason}.`, next });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
