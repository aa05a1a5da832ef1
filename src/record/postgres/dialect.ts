const statements = new Map<string, PreparedStatement>();

export interface PreparedStatement {
  text: string;
  /** Name of the prepared statement, the same on every connection. Without a name it is not cached. */
  name?: string;
}

/**
 * Enough for the statements in the source code. Limited, because each combination of filters is another statement, and the
 * server keeps a prepared statement as long as its connection.
 */
const maxStatements = 1000;

/**
 * Translates a statement for PostgreSQL: placeholders become $1, $2, ..., and index hints are removed. Drover's
 * statements contain no other question marks.
 */
export function translateStatement(text: string): PreparedStatement {
  let statement = statements.get(text);
  if (statement === undefined) {
    statement = { text: numberPlaceholders(text.replaceAll(/\s+indexed by \w+/g, "")) };
    if (statements.size >= maxStatements) return statement;
    statement.name = `drover_${statements.size}`;
    statements.set(text, statement);
  }
  return statement;
}

function numberPlaceholders(text: string): string {
  let last = 0;
  return text.replaceAll(/\?(\d+)?/g, (_, number: string | undefined) => {
    last += 1;
    return `$${number ?? last}`;
  });
}
