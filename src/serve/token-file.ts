import { closeSync, fsyncSync, linkSync, openSync, readFileSync, statSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { HostError } from "../model/errors.ts";
import type { Token } from "../model/token.ts";
import type { Store } from "../model/store.ts";
import { hashToken, newTokenText } from "./token-text.ts";

const shape = /^drv_[0-9A-Za-z]{32}$/;

/** This state directory's own admin token: made at the first start, readable by its user alone. */
export async function ensureAdminToken(
  directory: string,
  store: Pick<Store, "apply" | "read">,
  now: () => Date,
  newId: () => string,
): Promise<string> {
  const file = join(directory, "token");
  const text = readTokenFile(file) ?? makeTokenFile(file);
  const hash = hashToken(text);
  const known = await store.read.token(hash);
  if (known?.revoked_at)
    throw fileFault(
      file,
      "holds a token that was revoked",
      `Remove it, and the next start makes a new one: rm ${file}`,
    );
  if (!known) await store.apply([{ op: "put_token", token: adminToken(newId(), now()), hash }]);
  return text;
}

function adminToken(token_id: string, now: Date): Token {
  return {
    token_id,
    kind: "access",
    role: "admin",
    subject: "admin",
    label: "first admin token, in the state directory",
    created_by: "drover",
    created_at: now.toISOString(),
    expires_at: null,
    revoked_at: null,
    used_at: null,
  };
}

function readTokenFile(file: string): string | null {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) return null;
  if (process.platform !== "win32" && (found.mode & 0o077) !== 0)
    throw fileFault(file, "can be read by others", `chmod 600 ${file}`);
  const text = read(file).trim();
  if (!shape.test(text))
    throw fileFault(file, "does not hold a token", `Remove it, and the next start makes a new one: rm ${file}`);
  return text;
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw fileFault(file, "cannot be read", `Make it a file of this user: chown and chmod 600 ${file}`, cause);
  }
}

/** Written aside and linked into place: nobody ever reads half of it, and of two that race one wins. */
function makeTokenFile(file: string): string {
  const text = newTokenText("drv_");
  const draft = `${file}.${process.pid}.${text.slice(-6)}`;
  try {
    const fd = openSync(draft, "wx", 0o600);
    try {
      writeSync(fd, `${text}\n`);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    try {
      linkSync(draft, file);
    } finally {
      unlinkSync(draft);
    }
    return text;
  } catch (cause) {
    const raced = cause instanceof Error && Reflect.get(cause, "code") === "EEXIST" ? readTokenFile(file) : null;
    if (raced !== null) return raced;
    throw fileFault(file, "cannot be written", "Make the state directory writable for this user.", cause);
  }
}

function fileFault(file: string, what: string, next: string, cause?: unknown): HostError {
  return new HostError({
    code: "DROVER-API-027",
    message: `The token file ${file} ${what}.`,
    field: file,
    next,
    cause,
  });
}
