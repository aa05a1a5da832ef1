import { existsSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { shellQuote } from "../cli/shell-quote.ts";
import { HostError } from "../model/errors.ts";
import { databaseFile, movingFile, recordDirectory, runnersDirectory } from "../model/state-layout.ts";

/** Laid out as earlier versions did. A runner's own state has no database. */
export function isEarlierState(directory: string): boolean {
  return existsSync(databaseFile(directory)) || existsSync(runnersDirectory(directory));
}

/** A new record beside one that is not moved yet, or half moved, would hide it. */
export function refuseEarlierState(stateDirectory: string): void {
  if (existsSync(databaseFile(recordDirectory(stateDirectory)))) return;
  const moving = readMoving(stateDirectory);
  const from = moving?.from ?? earlierStateFor(stateDirectory);
  if (from === null) return;
  throw new HostError({
    code: "DROVER-STA-013",
    field: stateDirectory,
    message: moving
      ? `The move of ${from} to ${stateDirectory} was interrupted.`
      : `${from} is a state directory of an earlier Drover, with everything in one folder.`,
    next: `${moving ? "Finish it" : "Move it to where it belongs now"}: drover state move --from ${shellQuote(from)}`,
  });
}

/** What lies there, or where the user's own state lay before, beside those of projects now. */
export function earlierStateFor(stateDirectory: string): string | null {
  const userFolder = dirname(stateDirectory);
  const isOwn = basename(stateDirectory) === "user" && basename(userFolder) === "drover";
  return [stateDirectory, ...(isOwn ? [userFolder] : [])].find(isEarlierState) ?? null;
}

export interface Moving {
  from: string;
  /** Everything is in its new place: what is left is to be removed. */
  done: boolean;
  /** It is copied, as the two places are on different file systems. */
  copies: boolean;
}

export function readMoving(stateDirectory: string): Moving | null {
  if (!existsSync(movingFile(stateDirectory))) return null;
  // written whole, by `drover state move`
  return JSON.parse(readFileSync(movingFile(stateDirectory), "utf8")) as Moving;
}
