import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KilledProcess } from "../model/process.ts";
import { toSignalName } from "./signals.ts";

/** A launcher's report about the command. All fields are empty if the launcher could not write it. */
export interface LauncherStatus {
  level: string | null;
  end: { wstatus: number; leftovers: number; userMs: number; systemMs: number; maxRssKb: number } | null;
  failure: { step: string; errno: number } | null;
  /** Descendants that outlived the command, as far as the launcher named them. */
  killedProcesses: KilledProcess[];
  /** Number of processes that could not be killed. Only set-uid programs at the isolation level `group` can escape. */
  unkillable: number;
}

// Linux: O_TMPFILE is its own bit together with O_DIRECTORY, whose value differs between architectures.
const unnamedFileFlags = 0o20000000 | constants.O_DIRECTORY | constants.O_RDWR;

/**
 * Opens an unnamed file for the launcher's report. Unlike a pipe it needs no stream and can be read after the exit.
 * Returns null if it cannot be created; Drover then relies on Node's report of the exit.
 */
export function openStatusFile(): number | null {
  for (const directory of ["/dev/shm", tmpdir()]) {
    try {
      return openSync(directory, unnamedFileFlags, 0o600);
    } catch {
      // Not every file system supports unnamed files: try the next method.
    }
  }
  try {
    const directory = mkdtempSync(join(tmpdir(), "drover-status-"));
    try {
      return openSync(join(directory, "status"), "wx+", 0o600);
    } finally {
      rmSync(directory, { recursive: true });
    }
  } catch {
    return null; // There is no writable directory, but the command can still run.
  }
}

/** Reads the report and closes the file. */
export function readStatusFile(file: number | null): LauncherStatus {
  if (file === null) return parseStatus("");
  const buffer = Buffer.allocUnsafe(4096);
  const length = readSync(file, buffer, 0, buffer.length, 0);
  closeSync(file);
  return parseStatus(buffer.toString("latin1", 0, length));
}

/**
 * Uses only complete lines. The last line of a kind counts, because the launcher writes after every other process. Lines
 * of the kind `L` are all collected.
 */
export function parseStatus(text: string): LauncherStatus {
  const status: LauncherStatus = { level: null, end: null, failure: null, killedProcesses: [], unkillable: 0 };
  for (const line of text.split("\n").slice(0, -1)) {
    const [kind, first = "", ...rest] = line.split(" ");
    if (kind === "I") status.level = first;
    if (kind === "E") status.failure = { step: first, errno: Number(rest[0]) };
    if (kind === "L") status.killedProcesses.push({ pid: Number(first), commandLine: decode(rest.join(" ")) });
    if (kind === "U") status.unkillable = Number(first);
    if (/^S( \d+){5}$/.test(line)) {
      const [leftovers = 0, user = 0, system = 0, maxRssKb = 0] = rest.map(Number);
      status.end = { wstatus: Number(first), leftovers, userMs: user / 1000, systemMs: system / 1000, maxRssKb };
    }
  }
  return status;
}

/** The longest command line that a launcher reports, in bytes. */
const maxCommandLine = 127;

/**
 * Command lines are UTF-8, but the report is read as bytes. The last word of a truncated one is dropped: it may be part
 * of a secret, which the redactor would not recognize.
 */
function decode(bytes: string): string {
  const text = Buffer.from(bytes, "latin1").toString("utf8");
  return bytes.length < maxCommandLine ? text : `${text.slice(0, text.lastIndexOf(" ") + 1)}...`;
}

/** A launcher exits the same way as its command. If the two differ, the report was forged and the launcher killed. */
export function matchesExit(
  { wstatus }: { wstatus: number },
  exit: { code: number | null; signal: NodeJS.Signals | null },
): boolean {
  const signal = wstatus & 0x7f;
  if (signal === 0) return exit.code === ((wstatus >> 8) & 0xff);
  // Node reports a realtime signal as exit code 0.
  const isRealtime = signal > 31;
  return exit.signal === toSignalName(signal) || exit.code === 128 + signal || (isRealtime && exit.code === 0);
}
