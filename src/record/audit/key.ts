import { readFileSync, statSync } from "node:fs";
import { HostError } from "../../model/errors.ts";
import { checkOwner, checkSecretFile } from "../../model/ownership.ts";
import { auditKeyFile } from "../../model/state-layout.ts";

/** The key is stored as text: Node reads a short text file fastest, and people can copy it. */
const keyPattern = /^[0-9a-f]{64}\n?$/;

/** Returns null if there is no key yet. Refuses a key that other users can read or could have written. */
export function readKey(directory: string): Uint8Array | null {
  const file = auditKeyFile(directory);
  let text: string;
  try {
    const [directoryStats, keyStats] = [directory, file].map((path) => statSync(path, { throwIfNoEntry: false }));
    const problem =
      (directoryStats && checkOwner(directory, directoryStats)) ?? (keyStats && checkSecretFile(file, keyStats));
    if (problem) throw createKeyError(file, `is not used: ${problem.reason}`, problem.next);
    if (keyStats === undefined) return null;
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof HostError) throw error;
    throw createKeyError(
      file,
      "cannot be read",
      `Make sure that it is a file and that this user can read it: chown and chmod 600 ${file}.`,
      error,
    );
  }
  if (!keyPattern.test(text)) throw createKeyError(file, "is not 64 hexadecimal digits", "Restore it from a backup.");
  return Buffer.from(text, "hex");
}

export function createMissingKeyError(directory: string): HostError {
  return createKeyError(
    auditKeyFile(directory),
    "is missing, although the record has an audit trail sealed with it",
    `Restore it from a backup, or move ${directory} aside to start a new trail.`,
  );
}

function createKeyError(file: string, what: string, next: string, cause?: unknown): HostError {
  return new HostError({ code: "DROVER-AUD-001", message: `The audit key ${file} ${what}.`, field: file, next, cause });
}
