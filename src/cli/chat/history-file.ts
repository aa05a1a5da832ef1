import { closeSync, constants, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { chatHistoryFile, recordDirectory } from "../../model/state-layout.ts";

const mostLines = 500;
const mostBytes = 256 * 1024;

/** Messages typed in chats of this state directory, oldest first. Each line of the file is one JSON string. */
export interface HistoryFile {
  readonly lines: string[];
  add(text: string): void;
}

/** If the file cannot be read or written, the chat continues without it, and `onFault` gets the reason once. */
export function openHistory(stateDirectory: string, onFault: (message: string) => void): HistoryFile {
  const record = recordDirectory(stateDirectory);
  const file = chatHistoryFile(record);
  let isFaulty = false;
  const attempt = (what: () => void): void => {
    try {
      if (!isFaulty) what();
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      isFaulty = true;
      onFault(`cannot save the input history: ${error.message}`);
    }
  };
  const lines: string[] = [];
  attempt(() => lines.push(...parse(read(file))));
  return {
    lines,
    add(text) {
      if (text.trim() === "" || lines.at(-1) === text) return;
      lines.push(text);
      attempt(() => {
        // Another chat may have written to the file since.
        const kept = bounded([...parse(read(file)), text]);
        mkdirSync(record, { recursive: true, mode: 0o700 });
        replace(file, kept.map((one) => `${JSON.stringify(one)}\n`).join(""));
      });
    },
  };
}

function bounded(lines: readonly string[]): string[] {
  const kept = lines.slice(-mostLines);
  let bytes = 0;
  const from = kept.findLastIndex((line) => (bytes += Buffer.byteLength(line)) > mostBytes);
  return kept.slice(from + 1);
}

function read(file: string): string {
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
function parse(text: string): string[] {
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
function replace(file: string, text: string): void {
  const draft = `${file}.${process.pid}`;
  try {
    const fd = openSync(draft, "w", 0o600);
    try {
      writeSync(fd, text);
    } finally {
      closeSync(fd);
    }
    renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
}
