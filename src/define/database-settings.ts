import { readFileSync, statSync } from "node:fs";
import { RequestError } from "../model/errors.ts";

/** Where a fleet keeps its record, and what seals its audit chain and signs attempt tokens. */
export interface DatabaseSettings {
  url: string;
  secret: Uint8Array;
}

type Environment = Readonly<Record<string, string | undefined>>;

const secretShape = /^[0-9a-f]{64}$/i;

/** null: the record is kept in the state directory. */
export function readDatabaseSettings(env: Environment): DatabaseSettings | null {
  const url = readDatabaseUrl(env);
  return url === null ? null : { url, secret: findSecret(env) };
}

/** For those who only read, and need no secret. */
export function readDatabaseUrl(env: Environment): string | null {
  const url = env["DATABASE_URL"];
  if (url === undefined || url === "") return null;
  if (isDatabaseUrl(url)) return url;
  throw new RequestError({
    code: "DROVER-CFG-001",
    field: "DATABASE_URL",
    message: "DATABASE_URL is set, and is no address of a PostgreSQL database.",
    next: "Make it postgres://user:password@host:port/database, or unset it to keep the record in the state directory.",
  });
}

export function isDatabaseUrl(url: string): boolean {
  return URL.canParse(url) && /^postgres(?:ql)?:$/.test(new URL(url).protocol);
}

function findSecret(env: Environment): Uint8Array {
  const file = env["DROVER_SECRET_FILE"];
  const [field, text] = file ? ["DROVER_SECRET_FILE", readSecret(file)] : ["DROVER_SECRET", env["DROVER_SECRET"] ?? ""];
  if (secretShape.test(text.trim())) return Buffer.from(text.trim(), "hex");
  throw new RequestError({
    code: "DROVER-CFG-001",
    field,
    message:
      text === ""
        ? "DATABASE_URL is set, so the record is kept in PostgreSQL, and that needs a secret: it seals the audit trail and signs attempt tokens."
        : `${field} is not 64 hexadecimal digits.`,
    next: "Make one with openssl rand -hex 32, give the same to every coordinator as DROVER_SECRET or in a file named by DROVER_SECRET_FILE; or unset DATABASE_URL.",
  });
}

/** One that others can read protects nothing. */
function readSecret(file: string): string {
  let mode: number;
  let text: string;
  try {
    ({ mode } = statSync(file));
    text = readFileSync(file, "utf8");
  } catch (cause) {
    throw new RequestError({
      code: "DROVER-CFG-001",
      field: "DROVER_SECRET_FILE",
      message: `${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}.`,
      next: "Make it a file that this user can read.",
    });
  }
  if (process.platform === "win32" || (mode & 0o007) === 0) return text;
  throw new RequestError({
    code: "DROVER-CFG-001",
    field: "DROVER_SECRET_FILE",
    message: `${file} can be read by everybody.`,
    next: `Take their rights away: chmod o= ${file}`,
  });
}
