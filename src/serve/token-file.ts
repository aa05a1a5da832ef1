import {
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { HostError } from "../model/errors.ts";
import { checkOwner, checkSecretFile } from "../model/ownership.ts";
import { tokenFile, type TokenFileName } from "../model/state-layout.ts";
import { getTokenRejection, type Token } from "../model/token.ts";
import type { Store } from "../model/store.ts";
import { hashToken, newTokenText } from "./token-text.ts";

const tokenPattern = /^drv_[0-9A-Za-z]{32}$/;

/** Returns the admin token of this state directory. The first start creates its file, which only this user can read. */
export async function ensureAdminToken(
  directory: string,
  store: Pick<Store, "apply" | "read">,
  now: () => Date,
  newId: () => string,
): Promise<string> {
  const file = tokenFile(directory, "token");
  const text = readTokenFile(file) ?? createTokenFile(file);
  const hash = hashToken(text);
  const stored = await store.read.token(hash);
  const rejection = stored && getTokenRejection(stored, now().toISOString());
  if (rejection)
    throw tokenFileError(
      file,
      `holds a token that ${rejection === "revoked" ? "was revoked" : "has expired"}`,
      `Remove it; the next start creates a new one: rm ${file}`,
    );
  if (!stored)
    await store.apply([
      { op: "put_token", token: createAdminToken(newId(), now(), "first admin token, in the state directory"), hash },
    ]);
  return text;
}

export function createAdminToken(token_id: string, now: Date, label: string): Token {
  return {
    token_id,
    kind: "access",
    role: "admin",
    subject: "admin",
    label,
    created_by: "drover",
    created_at: now.toISOString(),
    expires_at: null,
    revoked_at: null,
    used_at: null,
  };
}

function readTokenFile(file: string): string | null {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) return null;
  const parent = dirname(file);
  const problem = checkOwner(parent, statSync(parent)) ?? checkSecretFile(file, stats);
  if (problem) throw tokenFileError(file, `is not used: ${problem.reason}`, problem.next);
  const text = readText(file).trim();
  if (!tokenPattern.test(text))
    throw tokenFileError(file, "does not contain a token", `Remove it; the next start creates a new one: rm ${file}`);
  return text;
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw tokenFileError(file, "cannot be read", `Make this user its owner and run chmod 600 ${file}`, error);
  }
}

/** Replaces the file atomically after its token was rotated. Returns its path. */
export function replaceTokenFile(directory: string, text: string, name: TokenFileName = "token"): string {
  const file = tokenFile(directory, name);
  try {
    renameSync(writePartialFile(file, text), file);
    return file;
  } catch (error) {
    throw tokenFileError(file, "cannot be written", "Write the new token to the file by hand, with mode 0600.", error);
  }
}

/** Links a complete file into place, so that other processes never read half of it, and one of two racing processes wins. */
function createTokenFile(file: string): string {
  const text = newTokenText("drv_");
  try {
    const partialFile = writePartialFile(file, text);
    try {
      linkSync(partialFile, file);
    } finally {
      unlinkSync(partialFile);
    }
    return text;
  } catch (error) {
    const existing = error instanceof Error && Reflect.get(error, "code") === "EEXIST" ? readTokenFile(file) : null;
    if (existing !== null) return existing;
    throw tokenFileError(
      file,
      "cannot be written",
      `Make the state directory ${dirname(dirname(file))} writable by this user.`,
      error,
    );
  }
}

function writePartialFile(file: string, text: string): string {
  const partialFile = `${file}.${process.pid}.${text.slice(-6)}`;
  const fd = openSync(partialFile, "wx", 0o600);
  try {
    writeSync(fd, `${text}\n`);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  return partialFile;
}

function tokenFileError(file: string, problem: string, next: string, cause?: unknown): HostError {
  return new HostError({
    code: "DROVER-API-027",
    message: `The token file ${file} ${problem}.`,
    field: file,
    next,
    cause,
  });
}
