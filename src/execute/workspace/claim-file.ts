import { rename, rm, utimes, writeFile } from "node:fs/promises";

/** The file that says who wants a directory, or has it, kept fresh while it is up. */
export interface ClaimFile {
  putUp(): Promise<void>;
  /** Rejects, with the file gone, where it could not be kept fresh. */
  takeDown(): Promise<void>;
}

export function createClaimFile(path: string, text: string, freshenMs: number): ClaimFile {
  let timer: NodeJS.Timeout | undefined;
  let freshening = Promise.resolve();
  let fault: { error: unknown } | null = null;

  async function freshen(): Promise<void> {
    try {
      const now = new Date();
      await utimes(path, now, now);
    } catch (error) {
      // taken for dead by another host, after this one had slept
      if (error instanceof Error && "code" in error && error.code === "ENOENT") await write(path, text);
      else throw error;
    }
  }

  return {
    async putUp() {
      await write(path, text);
      timer ??= setInterval(() => {
        freshening = freshening.then(freshen).catch((error: unknown) => void (fault ??= { error }));
      }, freshenMs).unref();
    },
    async takeDown() {
      clearInterval(timer);
      timer = undefined;
      await freshening;
      await Promise.all([rm(path, { force: true }), rm(asideOf(path), { force: true })]);
      if (fault) throw fault.error;
    },
  };
}

export const asideSuffix = ".aside";

const asideOf = (path: string): string => path + asideSuffix;

/** Never seen half-written. */
async function write(path: string, text: string): Promise<void> {
  await writeFile(asideOf(path), text, { mode: 0o600 });
  await rename(asideOf(path), path);
}
