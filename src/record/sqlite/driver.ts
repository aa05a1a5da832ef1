import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { HostError } from "../../model/errors.ts";
import type { Row, SqlValue } from "../query.ts";

/** The part of the node:sqlite API that Drover uses. Several modules provide it. */
export interface Database {
  prepare(sql: string): Statement;
  exec(sql: string): void;
  close(): void;
}

export interface Statement {
  run(...values: SqlValue[]): { changes: number | bigint; lastInsertRowid: number | bigint };
  get(...values: SqlValue[]): Row | undefined;
  all(...values: SqlValue[]): Row[];
  iterate(...values: SqlValue[]): IterableIterator<Row>;
}

export interface DatabaseOptions {
  readOnly?: boolean;
  enableForeignKeyConstraints?: boolean;
  timeout?: number;
}

type SqliteModule = {
  DatabaseSync: new (path: string, options: DatabaseOptions) => Database;
  backup(source: Database, path: string, options: { rate: number }): Promise<number>;
};

const packageName = "@photostructure/sqlite";

export function openDatabase(path: string, options: DatabaseOptions): Database {
  const { DatabaseSync } = loadSqlite();
  return new DatabaseSync(path, options);
}

/**
 * Makes a consistent copy on another thread while this one keeps writing. It copies all pages in one step, because a copy
 * page by page would start over with each write.
 */
export async function copyDatabase(path: string, to: string): Promise<void> {
  const { DatabaseSync, backup } = loadSqlite();
  const source = new DatabaseSync(path, { readOnly: true });
  try {
    await backup(source, to, { rate: -1 });
  } finally {
    source.close();
  }
}

/**
 * Loads the prebuilt library by its path: the package's own loader searches directories for 5 ms, too long for a cold
 * `exec`. The package and then Node's own module are the fallbacks.
 */
function loadSqlite(): SqliteModule {
  const ownDirectory = typeof __dirname === "string" ? __dirname : import.meta.dirname;
  const require = createRequire(join(ownDirectory, "driver.js"));
  const errors: unknown[] = [];
  for (const source of [...listPrebuilds(ownDirectory), packageName, "node:sqlite"]) {
    try {
      // A native module has no types. The contract tests exercise it.
      return require(source) as SqliteModule;
    } catch (error) {
      errors.push(error);
    }
  }
  throw new HostError({
    code: "DROVER-STA-007",
    message: `SQLite cannot be loaded on ${process.platform}-${process.arch} with Node ${process.versions.node}.`,
    next: "Reinstall Drover on this machine (npm install), or use Node 22.13 or newer, which includes SQLite.",
    cause: new AggregateError(errors),
  });
}

/** Prebuilt libraries, the likelier C library first. A wrong or missing one fails to load and is skipped. */
function listPrebuilds(ownDirectory: string): string[] {
  const musl = process.platform === "linux" && existsSync("/etc/alpine-release");
  for (let directory = ownDirectory; ; directory = dirname(directory)) {
    const base = join(directory, "node_modules", packageName, "prebuilds", `${process.platform}-${process.arch}`);
    if (existsSync(base)) {
      const names = musl ? ["musl", "glibc"] : ["glibc", "musl"];
      return names.map((libc) => join(base, `${packageName.replace("/", "+")}.${libc}.node`));
    }
    if (dirname(directory) === directory) return [];
  }
}
