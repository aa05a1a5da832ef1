import { closeSync, constants, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { chatHistoryFile, recordDirectory } from "../../model/state-layout.ts";

const maxLines = 500;
const maxBytes = 256 * 1024;

/** Messages typed in chats of this state directory, oldest first. Each line of the file is one JSON string. */
export interface HistoryFile {
  readonly lines: string[];
  add(text: string): void;
}

/** If the file cannot be read or written, the chat continues without it, and `onError` gets the reason once. */
export function openHistory(stateDirectory: string, onError: (message: string) => void): HistoryFile {
  const record = recordDirectory(stateDirectory);
  const file = chatHistoryFile(record);
  let hasFailed = false;
  const tryOnce = (work: () => void): void => {
    try {
      if (!hasFailed) work();
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      hasFailed = true;
      onError(`cannot save the input history: ${error.message}`);
    }
  };
  const lines: string[] = [];
  tryOnce(() => lines.push(...parseLines(readIfExists(file))));
  return {
    lines,
    add(text) {
      if (text.trim() === "" || lines.at(-1) === text) return;
      lines.push(text);
      tryOnce(() => {
        // Read the file again, because another chat may have written to it.
        const recent = trimToLimits([...parseLines(readIfExists(file)), text]);
        mkdirSync(record, { recursive: true, mode: 0o700 });
        replaceFile(file, recent.map((message) => `${JSON.stringify(message)}\n`).join(""));
      });
    },
  };
}

function trimToLimits(lines: readonly string[]): string[] {
  const recent = lines.slice(-maxLines);
  let bytes = 0;
  const lastDropped = recent.findLastIndex((line) => (bytes += Buffer.byteLength(line)) > maxBytes);
  return recent.slice(lastDropped + 1);
}

function readIfExists(file: string): string {
  let fd: number;
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
  try {
    return readFileSync(fd, "utf8");
  } finally {
    closeSync(fd);
  }
}

/** Skips invalid lines. */
function parseLines(text: string): string[] {
  return text.split("\n").flatMap((line) => {
    try {
      const value: unknown = JSON.parse(line);
      return typeof value === "string" ? [value] : [];
    } catch (error) {
      if (error instanceof SyntaxError) return [];
      throw error;
    }
  });
}

/** Replaces the file atomically. Only its owner can read it, because people type secrets. */
function replaceFile(file: string, text: string): void {
  const partialFile = `${file}.${process.pid}`;
  try {
    const fd = openSync(partialFile, "w", 0o600);
    try {
      writeSync(fd, text);
    } finally {
      closeSync(fd);
    }
    renameSync(partialFile, file);
  } finally {
    rmSync(partialFile, { force: true });
  }
}
