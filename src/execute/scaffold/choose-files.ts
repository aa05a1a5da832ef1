import type { FoundFile } from "../../model/executor.ts";
import { findNameFault, printableName } from "./file-names.ts";
import { errorCode, vanishedCodes, type LeftOut } from "./find-files.ts";
import { RunFailure } from "./run-failure.ts";

/** In MB, if the profile does not set `max_file_mb`. */
export const defaultMaxFileMb = 50;

/** Keeps the first files by path, up to the profile's limits. Reports each file left out with the reason. */
export async function chooseFiles(
  wanted: readonly FoundFile[],
  config: Record<string, unknown>,
): Promise<{ files: FoundFile[]; leftOut: LeftOut[] }> {
  const maxFiles = readNumber(config, "max_files", 20);
  const maxBytes = readNumber(config, "max_file_mb", defaultMaxFileMb) * 1024 * 1024;
  const files: FoundFile[] = [];
  const leftOut: LeftOut[] = [];
  for (const file of [...wanted].sort(comparePaths)) {
    const reason = await reasonToLeaveOut(file, files.length >= maxFiles, maxBytes);
    if (reason === null) files.push(file);
    else leftOut.push({ path: printableName(Buffer.from(file.path)), reason, size: file.size });
  }
  return { files, leftOut };
}

async function reasonToLeaveOut(file: FoundFile, isFull: boolean, maxBytes: number): Promise<LeftOut["reason"] | null> {
  const fault = findNameFault(Buffer.from(file.path));
  if (fault) return fault;
  if (file.size > maxBytes) return "too_large";
  if (isFull) return "too_many";
  return checkReadable(file);
}

async function checkReadable(file: FoundFile): Promise<LeftOut["reason"] | null> {
  try {
    await (await file.open()).close();
    return null;
  } catch (error) {
    if (vanishedCodes.has(errorCode(error))) return "gone";
    if (errorCode(error) === "EACCES") return "unreadable";
    throw error;
  }
}

function comparePaths(a: FoundFile, b: FoundFile): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}

function readNumber(config: Record<string, unknown>, key: string, fallback: number): number {
  const value = config[key];
  if (value === undefined) return fallback;
  if (typeof value === "number" && Number.isFinite(value) && value >= 0) return value;
  throw new RunFailure("refused", `The profile's ${key} must be a number, not ${JSON.stringify(value)}.`);
}
