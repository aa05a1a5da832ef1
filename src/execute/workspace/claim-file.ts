import { rename, rm, utimes, writeFile } from "node:fs/promises";

/** A file with which a run claims a directory. Its mtime is refreshed while it exists, to show that the run is alive. */
export interface ClaimFile {
  create(): Promise<void>;
  /** Rejects, after removing the file, if a refresh failed before. */
  remove(): Promise<void>;
}

export function createClaimFile(path: string, text: string, refreshMs: number): ClaimFile {
  let timer: NodeJS.Timeout | undefined;
  let lastRefresh = Promise.resolve();
  let refreshError: { error: unknown } | null = null;

  async function refresh(): Promise<void> {
    try {
      const now = new Date();
      await utimes(path, now, now);
    } catch (error) {
      // This host was suspended, and another host removed the claim as stale.
      if (error instanceof Error && "code" in error && error.code === "ENOENT") await writeClaim(path, text);
      else throw error;
    }
  }

  return {
    async create() {
      await writeClaim(path, text);
      timer ??= setInterval(() => {
        lastRefresh = lastRefresh.then(refresh).catch((error: unknown) => void (refreshError ??= { error }));
      }, refreshMs).unref();
    },
    async remove() {
      clearInterval(timer);
      timer = undefined;
      await lastRefresh;
      await Promise.all([rm(path, { force: true }), rm(toTemporaryPath(path), { force: true })]);
      if (refreshError) throw refreshError.error;
    },
  };
}

export const temporarySuffix = ".aside";

const toTemporaryPath = (path: string): string => path + temporarySuffix;

/** Renames a temporary file into place, so that no process reads a half-written claim. */
async function writeClaim(path: string, text: string): Promise<void> {
  await writeFile(toTemporaryPath(path), text, { mode: 0o600 });
  await rename(toTemporaryPath(path), path);
}
