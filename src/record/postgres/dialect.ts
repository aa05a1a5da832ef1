const translated = new Map<string, Prepared>();

export interface Prepared {
  text: string;
  /** Name of the prepared statement, the same on every connection. Without a name it is not cached. */
  name?: string;
}

/** The server keeps a prepared statement as long as its connection. More than our own statements, but limited because filters combine freely. */
const mostKept = 1000;

/**
 * Translates a statement for PostgreSQL: values become $1, $2, ..., and index hints are removed. Our statements contain no
 * other question marks.
 */
export function prepared(text: string): Prepared {
  let known = translated.get(text);
  if (known === undefined) {
    known = { text: numbered(text.replaceAll(/\s+indexed by \w+/g, "")) };
    if (translated.size >= mostKept) return known;
    known.name = `drover_${translated.size}`;
    translated.set(text, known);
  }
  return known;
}

function numbered(text: string): string {
  let last = 0;
  return text.replaceAll(/\?(\d+)?/g, (_, given: string | undefined) => {
    last += 1;
    return `$${given ?? last}`;
  });
}
