import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { HostError } from "../../model/errors.ts";

/** Text, as a short text file is what Node reads quickest, and what people can copy. */
const keyShape = /^[0-9a-f]{64}\n?$/;

export function keyFile(directory: string): string {
  return join(directory, "audit.key");
}

/** null where there is none yet. A key that others can read protects nothing and is refused. */
export function readKey(directory: string): Uint8Array | null {
  const file = keyFile(directory);
  let text: string;
  try {
    const found = statSync(file, { throwIfNoEntry: false });
    if (found === undefined) return null;
    if (process.platform !== "win32" && (found.mode & 0o077) !== 0) {
      throw keyFault(file, "can be read by others", `Take their rights away: chmod 600 ${file}.`);
    }
    text = readFileSync(file, "utf8");
  } catch (fault) {
    if (fault instanceof HostError) throw fault;
    throw keyFault(
      file,
      "cannot be read",
      `Make it a file that this user can read: chown and chmod 600 ${file}.`,
      fault,
    );
  }
  if (!keyShape.test(text)) throw keyFault(file, "is not 64 hexadecimal digits", "Restore it from a backup.");
  return Buffer.from(text, "hex");
}

export function missingKey(directory: string): HostError {
  return keyFault(
    keyFile(directory),
    "is missing, although there is an audit trail made with it",
    `Restore it from a backup, or move ${directory} aside to begin a new trail.`,
  );
}

function keyFault(file: string, what: string, next: string, cause?: unknown): HostError {
  return new HostError({ code: "DROVER-AUD-001", message: `The audit key ${file} ${what}.`, field: file, next, cause });
}
