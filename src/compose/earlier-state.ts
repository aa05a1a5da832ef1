import { existsSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { quoteForShell } from "../cli/shell-quote.ts";
import { HostError } from "../model/errors.ts";
import { databaseFile, movingFile, recordDirectory, runnersDirectory } from "../model/state-layout.ts";

/** Whether the directory has the layout of earlier versions. If only a runner used it, it has no database. */
export function isEarlierState(directory: string): boolean {
  return existsSync(databaseFile(directory)) || existsSync(runnersDirectory(directory));
}

/** Throws if the state still has to be moved from an old location. Creating a new record would hide it. */
export function rejectEarlierState(stateDirectory: string): void {
  if (existsSync(databaseFile(recordDirectory(stateDirectory)))) return;
  const move = readMove(stateDirectory);
  const from = move?.from ?? findEarlierState(stateDirectory);
  if (from === null) return;
  throw new HostError({
    code: "DROVER-STA-013",
    field: stateDirectory,
    message: move
      ? `The move of ${from} to ${stateDirectory} was interrupted.`
      : `${from} is a state directory in the layout of an earlier Drover version.`,
    next: `${move ? "Finish the move" : "Move it to the new layout"}: drover state move --from ${quoteForShell(from)}`,
  });
}

/** Finds state of an earlier version: in this directory or, for the user's own state, in its parent, where it used to be. */
export function findEarlierState(stateDirectory: string): string | null {
  const parent = dirname(stateDirectory);
  const isUserState = basename(stateDirectory) === "user" && basename(parent) === "drover";
  return [stateDirectory, ...(isUserState ? [parent] : [])].find(isEarlierState) ?? null;
}

export interface StateMove {
  from: string;
  /** Whether everything is at its new location, so that only the old one remains to be cleaned up. */
  done: boolean;
  /** Whether the state is copied, because the two locations are on different file systems. */
  copies: boolean;
}

export function readMove(stateDirectory: string): StateMove | null {
  if (!existsSync(movingFile(stateDirectory))) return null;
  // `drover state move` writes it atomically
  return JSON.parse(readFileSync(movingFile(stateDirectory), "utf8")) as StateMove;
}
