import { openDatabase, type Database, type Statement } from "./driver.ts";

export interface Connection {
  readonly file: string;
  /** Prepared once per connection. Only constant texts: the number of them is bounded by the source. */
  sql(text: string): Statement;
  exec(text: string): void;
  close(): void;
}

export function connect(file: string, mode: "read" | "write" | "immutable"): Connection {
  const options = { readOnly: mode !== "write", enableForeignKeyConstraints: false, timeout: 0 };
  const location = mode === "immutable" ? `file:${encodeURI(file).replace(/[?#]/g, encodeURIComponent)}?immutable=1` : file;
  return wrap(openDatabase(location, options), file);
}

function wrap(database: Database, file: string): Connection {
  const statements = new Map<string, Statement>();
  return {
    file,
    sql(text) {
      let statement = statements.get(text);
      if (statement === undefined) {
        statement = database.prepare(text);
        statements.set(text, statement);
      }
      return statement;
    },
    exec: (text) => database.exec(text),
    close() {
      statements.clear();
      database.close();
    },
  };
}
