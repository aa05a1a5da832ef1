import { openDatabase, type Statement } from "./driver.ts";

export interface Connection {
  readonly file: string;
  /**
   * Prepares a statement once per connection and caches it. A query has a different text for each combination of filters,
   * so the cache is limited. It drops the oldest statement.
   */
  sql(text: string): Statement;
  exec(text: string): void;
  close(): void;
}

/** `immutable`: the file's directory is not writable, so SQLite neither looks for a WAL nor creates one. */
export type ConnectionMode = "read" | "write" | "immutable";

const maxStatements = 1000;

export function connect(file: string, mode: ConnectionMode): Connection {
  const database = openDatabase(mode === "immutable" ? toImmutableUrl(file) : file, {
    readOnly: mode !== "write",
    enableForeignKeyConstraints: false,
    timeout: 0,
  });
  const statements = new Map<string, Statement>();
  let open = true;
  return {
    file,
    sql(text) {
      let statement = statements.get(text);
      if (statement === undefined) {
        statement = database.prepare(text);
        const [oldest] = statements.size < maxStatements ? [] : statements.keys();
        if (oldest !== undefined) statements.delete(oldest);
        statements.set(text, statement);
      }
      return statement;
    },
    exec: (text) => database.exec(text),
    close() {
      if (!open) return;
      open = false;
      statements.clear();
      database.close();
    },
  };
}

function toImmutableUrl(file: string): string {
  return `file:${encodeURI(file).replace(/[?#]/g, encodeURIComponent)}?immutable=1`;
}
