import { writeSync } from "node:fs";
import { isatty } from "node:tty";

/**
 * Writes at once and whole. Node's own stdout costs milliseconds to set up, and what it has not yet
 * written is lost at `process.exit`; a command line has nothing better to do than to wait for its reader.
 */
export function write(fd: 1 | 2, data: string | Uint8Array): void {
  const bytes = typeof data === "string" ? Buffer.from(data, "utf8") : data;
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(fd, bytes, at);
    } catch (error) {
      if (!isCode(error, "EAGAIN")) throw error;
      pauseThread(2);
    }
  }
}

export function isClosedPipe(error: unknown): boolean {
  return isCode(error, "EPIPE");
}

/** Colour and tables are for people; a file or a pipe gets plain fields. */
export function isTerminal(fd: 0 | 1 | 2): boolean {
  return isatty(fd);
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

function pauseThread(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
