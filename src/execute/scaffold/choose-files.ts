import type { FoundFile } from "../../model/executor.ts";
import { findNameProblem, toPrintableName } from "./file-names.ts";
import { errorCode, vanishedCodes, type SkippedFile } from "./find-files.ts";
import { RunFailure } from "./run-failure.ts";

/** In MB, if the profile does not set `max_file_mb`. */
export const defaultMaxFileMb = 50;

/** Chooses the first files by path, up to the profile's limits. Returns each skipped file with the reason. */
export async function chooseFiles(
  candidates: readonly FoundFile[],
  config: Record<string, unknown>,
): Promise<{ files: FoundFile[]; skipped: SkippedFile[] }> {
  const maxFiles = readNumber(config, "max_files", 20);
  const maxBytes = readNumber(config, "max_file_mb", defaultMaxFileMb) * 1024 * 1024;
  const files: FoundFile[] = [];
  const skipped: SkippedFile[] = [];
  for (const file of [...candidates].sort(comparePaths)) {
    const reason = await findSkipReason(file, files.length >= maxFiles, maxBytes);
    if (reason === null) files.push(file);
    else skipped.push({ path: toPrintableName(Buffer.from(file.path)), reason, size: file.size });
  }
  return { files, skipped };
}

async function findSkipReason(
  file: FoundFile,
  isFull: boolean,
  maxBytes: number,
): Promise<SkippedFile["reason"] | null> {
  const problem = findNameProblem(Buffer.from(file.path));
  if (problem) return problem;
  if (file.size > maxBytes) return "too_large";
  if (isFull) return "too_many";
  return checkReadable(file);
}

async function checkReadable(file: FoundFile): Promise<SkippedFile["reason"] | null> {
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
