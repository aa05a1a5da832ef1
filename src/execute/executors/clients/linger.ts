import type { LineReader } from "./read-lines.ts";

export interface Linger {
  read(line: string): Promise<void>;
  /** Aborted when the client has had its time. */
  readonly enough: AbortSignal;
  /** It has ended, by itself or not. */
  stop(): void;
}

/** For what clients do after their result: hooks of the operator, writing the conversation down. */
export const lingerMs = 10_000;

/**
 * A client that has given its result and does not end would keep its run, and in the end have it fail as timed out:
 * after a silence it has to go, and its result stands. One that goes on to talk is at work again.
 */
export function createLinger(lines: LineReader, ms = lingerMs): Linger {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  return {
    enough: controller.signal,
    async read(line) {
      clearTimeout(timer);
      await lines.read(line);
      if (lines.conclude({ exitCode: null, stderr: "" }) !== null) timer = setTimeout(() => controller.abort(), ms);
    },
    stop: () => clearTimeout(timer),
  };
}
