import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { signalName } from "./signals.ts";

/** What one launcher wrote about the command. Everything is absent where it could not write. */
export interface LauncherStatus {
  level: string | null;
  end: { wstatus: number; leftovers: number; userMs: number; systemMs: number; maxRssKb: number } | null;
  failure: { step: string; errno: number } | null;
  /** How many processes refused to be killed: set-uid programs, at level group. */
  unkillable: number;
}

// Linux: O_TMPFILE is its own bit together with O_DIRECTORY, whose value differs between architectures.
const unnamed = 0o20000000 | constants.O_DIRECTORY | constants.O_RDWR;

/**
 * A file without a name for the launcher to report into: unlike a pipe it costs no stream, and it can be
 * read after the exit. null where none can be made; then Node's own word on the exit is taken.
 */
export function openStatusFile(): number | null {
  for (const directory of ["/dev/shm", tmpdir()]) {
    try {
      return openSync(directory, unnamed, 0o600);
    } catch {
      // not every file system has unnamed files: try the next way
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
    return null; // nowhere to write at all: the command can still run
  }
}

/** Reads what is there and closes the file. */
export function takeStatus(file: number | null): LauncherStatus {
  if (file === null) return parseStatus("");
  const buffer = Buffer.allocUnsafe(1024);
  const length = readSync(file, buffer, 0, buffer.length, 0);
  closeSync(file);
  return parseStatus(buffer.toString("latin1", 0, length));
}

/** Whole lines only, and the last of each kind: the launcher writes last, whoever else may have found the file. */
export function parseStatus(text: string): LauncherStatus {
  const status: LauncherStatus = { level: null, end: null, failure: null, unkillable: 0 };
  for (const line of text.split("\n").slice(0, -1)) {
    const [kind, first = "", ...rest] = line.split(" ");
    if (kind === "I") status.level = first;
    if (kind === "E") status.failure = { step: first, errno: Number(rest[0]) };
    if (kind === "U") status.unkillable = Number(first);
    if (/^S( \d+){5}$/.test(line)) {
      const [leftovers = 0, user = 0, system = 0, maxRssKb = 0] = rest.map(Number);
      status.end = { wstatus: Number(first), leftovers, userMs: user / 1000, systemMs: system / 1000, maxRssKb };
    }
  }
  return status;
}

/** A launcher ends as it says the command did. An end that another wrote for one that was killed does not agree. */
export function agrees(
  { wstatus }: { wstatus: number },
  exit: { code: number | null; signal: NodeJS.Signals | null },
): boolean {
  const signal = wstatus & 0x7f;
  if (signal === 0) return exit.code === ((wstatus >> 8) & 0xff);
  // Node reports a death by a realtime signal as exit code 0
  const isRealtime = signal > 31;
  return exit.signal === signalName(signal) || exit.code === 128 + signal || (isRealtime && exit.code === 0);
}
