import type { LineReader } from "./line-reader.ts";

export interface ExitGrace {
  read(line: string): Promise<void>;
  /** Aborts when the grace period is over. */
  readonly enough: AbortSignal;
  /** Call this once the client has exited. */
  stop(): void;
}

/** The time clients have after their result for the operator's hooks and for saving the conversation. */
export const exitGraceMs = 10_000;

/**
 * Stops a client that has reported its result but does not exit. Without this its run would time out and fail. The
 * result stands, and further output restarts the grace period.
 */
export function createExitGrace(lines: LineReader, ms = exitGraceMs): ExitGrace {
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
