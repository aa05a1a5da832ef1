import { rename, rm, utimes, writeFile } from "node:fs/promises";

/** A file with which a run claims a directory. Its mtime is refreshed while it exists, as a sign of life. */
export interface ClaimFile {
  create(): Promise<void>;
  /** Rejects, after removing the file, if a refresh failed before. */
  remove(): Promise<void>;
}

export function createClaimFile(path: string, text: string, refreshMs: number): ClaimFile {
  let timer: NodeJS.Timeout | undefined;
  let refreshing = Promise.resolve();
  let fault: { error: unknown } | null = null;

  async function refresh(): Promise<void> {
    try {
      const now = new Date();
      await utimes(path, now, now);
    } catch (error) {
      // this host was suspended, and another took the claim for dead and removed it
      if (error instanceof Error && "code" in error && error.code === "ENOENT") await write(path, text);
      else throw error;
    }
  }

  return {
    async create() {
      await write(path, text);
      timer ??= setInterval(() => {
        refreshing = refreshing.then(refresh).catch((error: unknown) => void (fault ??= { error }));
      }, refreshMs).unref();
    },
    async remove() {
      clearInterval(timer);
      timer = undefined;
      await refreshing;
      await Promise.all([rm(path, { force: true }), rm(temporaryPath(path), { force: true })]);
      if (fault) throw fault.error;
    },
  };
}

export const temporarySuffix = ".aside";

const temporaryPath = (path: string): string => path + temporarySuffix;

/** Renames a temporary file into place, so that nobody reads a half-written claim. */
async function write(path: string, text: string): Promise<void> {
  await writeFile(temporaryPath(path), text, { mode: 0o600 });
  await rename(temporaryPath(path), path);
}
