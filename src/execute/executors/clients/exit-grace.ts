import type { LineReader } from "./line-reader.ts";

export interface ExitGrace {
  read(line: string): Promise<void>;
  /** Aborts when the grace period ends. */
  readonly expired: AbortSignal;
  /** Call this once the client has exited. */
  stop(): void;
}

/**
 * How long a client may keep running after it reports its result, to run the operator's hooks and save the
 * conversation.
 */
export const exitGraceMs = 10_000;

/**
 * Stops a client that has reported its result but does not exit. Otherwise its run would time out and fail. The
 * run keeps the result. Further output restarts the grace period.
 */
export function createExitGrace(lines: LineReader, ms = exitGraceMs): ExitGrace {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  return {
    expired: controller.signal,
    async read(line) {
      clearTimeout(timer);
      await lines.read(line);
      if (lines.conclude({ exitCode: null, stderr: "" }) !== null) timer = setTimeout(() => controller.abort(), ms);
    },
    stop: () => clearTimeout(timer),
  };
}
