import { closeSync, openSync, rmSync, write } from "node:fs";
import type { Redactor } from "../model/process.ts";

/** A file that receives a complete stream, redacted. */
export interface Spill {
  /** Resolves when the next chunk may be pushed. Rejects if the file cannot be written. */
  push(chunk: Uint8Array): Promise<void>;
  end(): Promise<void>;
  /** Removes the file. Call it instead of `end`, before pushing anything. */
  discard(): void;
  readonly path: string;
}

/** Creates the file, readable only by its owner. Throws if it exists or cannot be created. */
export function openSpill(path: string, redactor: Redactor | undefined): Spill {
  const file = openSync(path, "wx", 0o600);
  const redactStream = redactor?.stream();
  let lastWrite = Promise.resolve();
  return {
    path,
    push(chunk) {
      const redacted = redactStream === undefined ? chunk : redactStream.push(chunk);
      if (redacted.length > 0) lastWrite = lastWrite.then(() => writeAll(file, redacted));
      return lastWrite;
    },
    async end() {
      try {
        await lastWrite;
        const rest = redactStream?.end();
        if (rest !== undefined && rest.length > 0) await writeAll(file, rest);
      } finally {
        closeSync(file);
      }
    },
    discard() {
      closeSync(file);
      rmSync(path);
    },
  };
}

async function writeAll(file: number, bytes: Uint8Array): Promise<void> {
  for (let offset = 0; offset < bytes.length;) {
    offset += await new Promise<number>((resolve, reject) => {
      write(file, bytes, offset, bytes.length - offset, null, (error, written) =>
        error ? reject(error) : resolve(written),
      );
    });
  }
}
