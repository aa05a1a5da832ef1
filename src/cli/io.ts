import { writeSync } from "node:fs";
import { isatty } from "node:tty";
import { HostError } from "../model/errors.ts";
import { stripControlCharacters } from "./strip-control-characters.ts";

/**
 * Writes at once and whole. Node's own stdout costs milliseconds to set up, and what it has not yet
 * written is lost at `process.exit`; a command line has nothing better to do than to wait for its reader.
 * A reader that went away is an EPIPE (see `isClosedPipe`), whatever else is in the way a HostError.
 *
 * Text is for people and may quote what an agent, a file or a server said: no control sequence of it gets out, not even
 * into a pipe or a file, which somebody shows at a terminal later. Bytes are data, and are written as they are.
 */
export function write(fd: 1 | 2, data: string | Uint8Array): void {
  const bytes =
    typeof data === "string" ? Buffer.from(stripControlCharacters(data, { colours: isTerminal(fd) }), "utf8") : data;
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(fd, bytes, at);
    } catch (error) {
      if (isClosedPipe(error)) throw error;
      if (!isCode(error, "EAGAIN")) throw cannotWrite(fd, error);
      pauseThread(2);
    }
  }
}

/** For screens that move the cursor: what they show of others has been made safe before. */
export function draw(fd: 1 | 2, text: string): void {
  write(fd, Buffer.from(text, "utf8"));
}

/** What an agent wrote or answered: a program gets exactly that, a terminal gets it as text. */
export function writeContent(content: string | Uint8Array): void {
  const bytes = typeof content === "string" ? Buffer.from(content, "utf8") : content;
  write(1, isTerminal(1) ? Buffer.from(bytes).toString("utf8") : bytes);
}

/** For hints: a reader that is gone must not end what runs. */
export function tryWrite(fd: 1 | 2, line: string): void {
  try {
    write(fd, line);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
  }
}

export function isClosedPipe(error: unknown): boolean {
  return isCode(error, "EPIPE");
}

/** Colour and tables are for people; a file or a pipe gets plain fields. */
export function isTerminal(fd: 0 | 1 | 2): boolean {
  return isatty(fd);
}

function cannotWrite(fd: 1 | 2, cause: unknown): HostError {
  return new HostError({
    code: "DROVER-OUT-001",
    message: `${fd === 1 ? "stdout" : "stderr"} cannot be written: ${cause instanceof Error ? cause.message : String(cause)}`,
    next: "Make room, or send the output elsewhere.",
    cause,
  });
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

function pauseThread(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
