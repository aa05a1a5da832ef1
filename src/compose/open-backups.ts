import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import type { DatabaseSettings } from "../define/database-settings.ts";
import { recordDirectory } from "../model/state-layout.ts";
import { backupStore } from "../record/backup.ts";
import { createRecordDirectory } from "../record/state-directory.ts";
import type { BackupFile } from "../serve/deps.ts";

export interface Backups {
  /** Returns null while another backup exists, because each is a full copy on the disk. */
  make(signal: AbortSignal): Promise<BackupFile> | null;
  /** Waits briefly for an aborted backup to end. */
  stop(): Promise<void>;
}

export interface BackupsOptions {
  stateDirectory: string;
  database?: DatabaseSettings | null | undefined;
}

/** Limits the wait, because a copy on another thread cannot be interrupted. The next start removes an unfinished copy. */
const maxStopMs = 2000;

/**
 * Creates each backup in the directory of the record, which is hidden from commands, because a backup contains the audit
 * key. First removes the backups of dead processes.
 */
export async function openBackups({ stateDirectory, database }: BackupsOptions): Promise<Backups> {
  const record = recordDirectory(stateDirectory);
  // With PostgreSQL the directory may not exist yet.
  if (existsSync(record)) await removeLeftovers(record);
  let currentBackup: Promise<unknown> | null = null;
  return {
    make(signal) {
      if (currentBackup !== null) return null;
      let onDisposed = (): void => undefined;
      const disposed = new Promise<void>((resolve) => (onDisposed = resolve)).then(() => {
        if (currentBackup === disposed) currentBackup = null;
      });
      currentBackup = disposed;
      return copy(signal, onDisposed);
    },
    async stop() {
      if (currentBackup === null) return;
      let timer: NodeJS.Timeout | undefined;
      await Promise.race([currentBackup, new Promise((resolve) => (timer = setTimeout(resolve, maxStopMs)))]);
      clearTimeout(timer);
    },
  };

  async function copy(signal: AbortSignal, onDisposed: () => void): Promise<BackupFile> {
    let directory: string | null = null;
    const dispose = async (): Promise<void> => {
      try {
        if (directory !== null) await rm(directory, { recursive: true, force: true });
      } finally {
        onDisposed();
      }
    };
    try {
      createRecordDirectory(record);
      directory = await mkdtemp(join(record, toBackupPrefix()));
      const file = join(directory, "drover.db");
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

/** Contains host and process, because with PostgreSQL, coordinators on other machines may share the directory. */
const toBackupPrefix = (pid: number | string = process.pid): string => `drover-backup-${hostname()}-${pid}-`;

async function removeLeftovers(record: string): Promise<void> {
  for (const name of await readdir(record)) {
    const pid = /-(\d+)-\w+$/.exec(name)?.[1];
    if (pid === undefined || !name.startsWith(toBackupPrefix(pid)) || isAlive(Number(pid))) continue;
    await rm(join(record, name), { recursive: true, force: true });
  }
}

/** Whether the process that made a backup is alive. This one has made none yet, so its pid means an earlier process. */
function isAlive(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM: the process exists but belongs to another user.
    return error instanceof Error && Reflect.get(error, "code") === "EPERM";
  }
}
