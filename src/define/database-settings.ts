import { readFileSync, statSync } from "node:fs";
import { RequestError } from "../model/errors.ts";
import type { Environment } from "../model/environment.ts";

/** The PostgreSQL database of a fleet, and the secret that seals its audit chain and signs attempt tokens. */
export interface DatabaseSettings {
  url: string;
  secret: Uint8Array;
}

const secretPattern = /^[0-9a-f]{64}$/i;

/** Returns null if DATABASE_URL is not set. The record is then in the state directory. */
export function readDatabaseSettings(env: Environment): DatabaseSettings | null {
  const url = readDatabaseUrl(env);
  return url === null ? null : { url, secret: readSecret(env) };
}

/** For commands that only read the record and need no secret. */
export function readDatabaseUrl(env: Environment): string | null {
  const url = env["DATABASE_URL"];
  if (url === undefined || url === "") return null;
  if (isDatabaseUrl(url)) return url;
  throw new RequestError({
    code: "DROVER-CFG-001",
    field: "DATABASE_URL",
    message: "DATABASE_URL is not the address of a PostgreSQL database.",
    next: "Set it to postgres://user:password@host:port/database, or unset it to keep the record in the state directory.",
  });
}

export function isDatabaseUrl(url: string): boolean {
  return URL.canParse(url) && /^postgres(?:ql)?:$/.test(new URL(url).protocol);
}

function readSecret(env: Environment): Uint8Array {
  const file = env["DROVER_SECRET_FILE"];
  const [field, text] = file
    ? ["DROVER_SECRET_FILE", readSecretFile(file)]
    : ["DROVER_SECRET", env["DROVER_SECRET"] ?? ""];
  if (secretPattern.test(text.trim())) return Buffer.from(text.trim(), "hex");
  throw new RequestError({
    code: "DROVER-CFG-001",
    field,
    message:
      text === ""
        ? "DATABASE_URL is set, so the record is in PostgreSQL. That needs a secret, which seals the audit trail and signs attempt tokens."
        : `${field} is not 64 hexadecimal digits.`,
    next: "Create one with openssl rand -hex 32. Use the same one for every coordinator: set DROVER_SECRET, or DROVER_SECRET_FILE to the path of a file. Or unset DATABASE_URL.",
  });
}

/** Refuses a file that every user can read. */
function readSecretFile(file: string): string {
  let mode: number;
  let text: string;
  try {
    ({ mode } = statSync(file));
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new RequestError({
      code: "DROVER-CFG-001",
      field: "DROVER_SECRET_FILE",
      message: `${file} cannot be read: ${error instanceof Error ? error.message : String(error)}.`,
      next: "Set DROVER_SECRET_FILE to a file that this user can read.",
    });
  }
  if (process.platform === "win32" || (mode & 0o007) === 0) return text;
  throw new RequestError({
    code: "DROVER-CFG-001",
    field: "DROVER_SECRET_FILE",
    message: `${file} is readable by every user of this machine.`,
    next: `Remove that permission: chmod o= ${file}`,
  });
}
