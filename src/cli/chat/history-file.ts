import { closeSync, constants, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { chatHistoryFile, recordDirectory } from "../../model/state-layout.ts";

const mostLines = 500;
const mostBytes = 256 * 1024;

/** What was typed in chats of this state directory, oldest first: each a JSON text on a line of its own, as it may hold several. */
export interface HistoryFile {
  readonly lines: string[];
  add(text: string): void;
}

/** A history that cannot be read or written is none: it must not keep anybody from talking. `onFault` gets the reason, once. */
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
      onFault(`the history of what you type is not kept: ${error.message}`);
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
        // another chat may have written meanwhile
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

/** A line that is none, as after a crash of another program, is left out. */
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

/** Whole or not at all, and for its owner's eyes only: people type secrets. */
function replace(file: string, text: string): void {
  const aside = `${file}.${process.pid}`;
  try {
    const fd = openSync(aside, "w", 0o600);
    try {
      writeSync(fd, text);
    } finally {
      closeSync(fd);
    }
    renameSync(aside, file);
  } finally {
    rmSync(aside, { force: true });
  }
}
