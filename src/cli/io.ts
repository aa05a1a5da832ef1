import { writeSync } from "node:fs";
import { isatty } from "node:tty";
import { HostError } from "../model/errors.ts";
import { stripControlCharacters } from "./strip-control-characters.ts";

/**
 * Writes everything synchronously. Node's own stdout takes milliseconds to set up and loses unwritten data at
 * `process.exit`. Throws EPIPE if the reader has closed the pipe (see `isClosedPipe`), and a HostError for any other failure.
 *
 * Strings are for people and may quote an agent, a file or a server, so control sequences are stripped. This also applies
 * to pipes and files, because they may be printed on a terminal later. Bytes are data and are written unchanged.
 */
export function write(fd: 1 | 2, data: string | Uint8Array): void {
  const bytes =
    typeof data === "string" ? Buffer.from(stripControlCharacters(data, { colours: isTerminal(fd) }), "utf8") : data;
  for (let offset = 0; offset < bytes.length;) {
    try {
      offset += writeSync(fd, bytes, offset);
    } catch (error) {
      if (isClosedPipe(error)) throw error;
      if (!hasErrorCode(error, "EAGAIN")) throw cannotWrite(fd, error);
      pauseThread(2);
    }
  }
}

/** Writes text with its control sequences, for screens that move the cursor. Quoted text must already be sanitized. */
export function draw(fd: 1 | 2, text: string): void {
  write(fd, Buffer.from(text, "utf8"));
}

/** Writes an agent's output: unchanged to a pipe or a file, sanitized to a terminal. */
export function writeContent(content: string | Uint8Array): void {
  const bytes = typeof content === "string" ? Buffer.from(content, "utf8") : content;
  write(1, isTerminal(1) ? Buffer.from(bytes).toString("utf8") : bytes);
}

/** Writes a hint and ignores failures: a closed stderr must not stop the command. */
export function tryWrite(fd: 1 | 2, line: string): void {
  try {
    write(fd, line);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
  }
}

export function isClosedPipe(error: unknown): boolean {
  return hasErrorCode(error, "EPIPE");
}

/** Whether a terminal is attached. Only terminals get colours and aligned tables. */
export function isTerminal(fd: 0 | 1 | 2): boolean {
  return isatty(fd);
}

function cannotWrite(fd: 1 | 2, cause: unknown): HostError {
  return new HostError({
    code: "DROVER-OUT-001",
    message: `Cannot write to ${fd === 1 ? "stdout" : "stderr"}: ${cause instanceof Error ? cause.message : String(cause)}`,
    next: "Free some disk space, or redirect the output elsewhere.",
    cause,
  });
}

function hasErrorCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

function pauseThread(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
