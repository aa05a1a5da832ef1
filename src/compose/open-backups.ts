import { mkdtemp, readdir, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import type { DatabaseSettings } from "../define/database-settings.ts";
import { recordDirectory } from "../model/state-layout.ts";
import { backupStore } from "../record/backup.ts";
import type { BackupFile } from "../serve/deps.ts";

export interface Backups {
  /** null while there is another: each is a whole copy on the disk. */
  make(signal: AbortSignal): Promise<BackupFile> | null;
  /** Waits a while for one that is being given up. */
  stop(): Promise<void>;
}

export interface BackupsOptions {
  stateDirectory: string;
  database?: DatabaseSettings | null | undefined;
}

/** A copy in one go, on another thread, cannot be interrupted: what is left of it is removed by the next start. */
const longestStopMs = 2000;

/** Each in a folder of its own, as it holds the key. What an earlier process left there is removed first. */
export async function openBackups({ stateDirectory, database }: BackupsOptions): Promise<Backups> {
  const record = recordDirectory(stateDirectory);
  const parent = database ? tmpdir() : record;
  await sweep(parent);
  let current: Promise<unknown> | null = null;
  return {
    make(signal) {
      if (current !== null) return null;
      let disposed = (): void => undefined;
      const mine = new Promise<void>((resolve) => (disposed = resolve)).then(() => {
        if (current === mine) current = null;
      });
      current = mine;
      return copy(signal, disposed);
    },
    async stop() {
      if (current === null) return;
      let timer: NodeJS.Timeout | undefined;
      await Promise.race([current, new Promise((resolve) => (timer = setTimeout(resolve, longestStopMs)))]);
      clearTimeout(timer);
    },
  };

  async function copy(signal: AbortSignal, disposed: () => void): Promise<BackupFile> {
    let folder: string | null = null;
    const dispose = async (): Promise<void> => {
      try {
        if (folder !== null) await rm(folder, { recursive: true, force: true });
      } finally {
        disposed();
      }
    };
    try {
      folder = await mkdtemp(join(parent, ownPrefix()));
      const file = join(folder, "drover.db");
      if (database) {
        const { backupPostgres } = await import("../record/copy/backup-postgres.ts");
        await backupPostgres(database, file, new Date(), signal);
      } else {
        await backupStore({ directory: record, file, signal }, new Date());
      }
      return { file, dispose };
    } catch (error) {
      await dispose();
      throw error;
    }
  }
}

/** The folder for such files may be one that other machines or users have as well. */
const ownPrefix = (pid: number | string = process.pid): string => `drover-backup-${hostname()}-${pid}-`;

async function sweep(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const pid = /-(\d+)-\w+$/.exec(name)?.[1];
    if (pid === undefined || !name.startsWith(ownPrefix(pid)) || isAlive(Number(pid))) continue;
    await removeOwn(join(parent, name));
  }
}

async function removeOwn(folder: string): Promise<void> {
  try {
    await rm(folder, { recursive: true, force: true });
  } catch (error) {
    // another user's, who has the same folder for such files
    if (!(error instanceof Error) || !["EACCES", "EPERM"].includes(String(Reflect.get(error, "code")))) throw error;
  }
}

/** This process itself has made none yet: one of its number is of another that had it before. */
function isAlive(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // someone else's process lives as well
    return error instanceof Error && Reflect.get(error, "code") === "EPERM";
  }
}
