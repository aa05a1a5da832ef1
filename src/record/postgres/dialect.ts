const translated = new Map<string, Prepared>();

export interface Prepared {
  text: string;
  /** Of the prepared statement, the same on every connection. */
  name: string;
}

/**
 * A statement of the common SQL as PostgreSQL wants it: values are numbered with a dollar, and the planner takes no
 * hints. Our texts hold no question mark of their own.
 */
export function prepared(text: string): Prepared {
  let known = translated.get(text);
  if (known === undefined) {
    known = { text: numbered(text.replaceAll(/\s+indexed by \w+/g, "")), name: `drover_${translated.size}` };
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
