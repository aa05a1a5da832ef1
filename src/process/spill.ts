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
  const redacting = redactor?.stream();
  let before = Promise.resolve();
  return {
    path,
    push(chunk) {
      const clean = redacting === undefined ? chunk : redacting.push(chunk);
      if (clean.length > 0) before = before.then(() => writeWhole(file, clean));
      return before;
    },
    async end() {
      try {
        await before;
        const rest = redacting?.end();
        if (rest !== undefined && rest.length > 0) await writeWhole(file, rest);
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

async function writeWhole(file: number, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    at += await new Promise<number>((resolve, reject) => {
      write(file, bytes, at, bytes.length - at, null, (error, written) => (error ? reject(error) : resolve(written)));
    });
  }
}
