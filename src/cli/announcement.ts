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

/** Written by a coordinator into its state directory while it serves. */
export interface Announcement {
  url: string;
  /** The path of its socket, which commands on this machine prefer. */
  socket: string | null;
  pid: number;
  /** Beside it, with the token that it takes. */
  token_file: TokenFileName;
}

/** null where there is none, or none that makes sense: a coordinator that serves writes it whole. */
export function readAnnouncement(stateDirectory: string): Announcement | null {
  const announcement = tryJson(readOwn(announcementFile(recordDirectory(stateDirectory))) ?? "");
  if (typeof announcement !== "object" || announcement === null || !("url" in announcement) || !("pid" in announcement))
    return null;
  const { url, pid } = announcement;
  const token_file =
    "token_file" in announcement && announcement.token_file === "fleet-token" ? "fleet-token" : "token";
  const socket = "socket" in announcement && typeof announcement.socket === "string" ? announcement.socket : null;
  if (typeof url !== "string" || !URL.canParse(url)) return null;
  return typeof pid === "number" && Number.isInteger(pid) && pid > 0 ? { url, socket, pid, token_file } : null;
}

/** A token kept beside the record; null where there is none. */
export function readKeptToken(stateDirectory: string, name: TokenFileName | "runner-token"): string | null {
  const record = recordDirectory(stateDirectory);
  return readOwn(name === "runner-token" ? runnerTokenFile(record) : tokenFile(record, name))?.trim() || null;
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // someone else's process lives as well
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/**
 * What a file says that only this user, or root, can have put there: it decides where commands go and whom they trust.
 * null where there is no such file.
 */
function readOwn(path: string): string | null {
  const found = checkPrivatePath(path, "file");
  if (found === null) return null;
  if (found.fault === null) return readFileSync(path, "utf8");
  const { why, next } = found.fault;
  throw new HostError({ code: "DROVER-API-027", field: path, message: `${path} is not used: ${why}.`, next });
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
