import { rename, rm, utimes, writeFile } from "node:fs/promises";

/** A file with which a run locks a directory. Its mtime is refreshed while it exists, to show that the run is alive. */
export interface LockFile {
  create(): Promise<void>;
  /** Rejects, after removing the file, if a refresh failed before. */
  remove(): Promise<void>;
}

export function createLockFile(path: string, text: string, refreshMs: number): LockFile {
  let timer: NodeJS.Timeout | undefined;
  let lastRefresh = Promise.resolve();
  let refreshError: { error: unknown } | null = null;

  async function refresh(): Promise<void> {
    try {
      const now = new Date();
      await utimes(path, now, now);
    } catch (error) {
      // The file is gone, for example because this host was suspended and another one removed it as stale. Create it again.
      if (error instanceof Error && "code" in error && error.code === "ENOENT") await writeLock(path, text);
      else throw error;
    }
  }

  return {
    async create() {
      await writeLock(path, text);
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

export const temporarySuffix = ".tmp";

const toTemporaryPath = (path: string): string => path + temporarySuffix;

/** Renames a temporary file into place, so that no process reads a half-written lock file. */
async function writeLock(path: string, text: string): Promise<void> {
  await writeFile(toTemporaryPath(path), text, { mode: 0o600 });
  await rename(toTemporaryPath(path), path);
}
