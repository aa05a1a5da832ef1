const translated = new Map<string, Prepared>();

export interface Prepared {
  text: string;
  /** Of the prepared statement, the same on every connection. Without one it is not kept. */
  name?: string;
}

/** A server keeps each for every connection, for as long as that lives: more than we have, but for filters put together at will. */
const mostKept = 1000;

/**
 * A statement of the common SQL as PostgreSQL wants it: values are numbered with a dollar, and the planner takes no
 * hints. Our texts hold no question mark of their own.
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
