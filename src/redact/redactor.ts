import type { Redactor } from "../model/process.ts";
import { assignmentMatcher } from "./assignments.ts";
import { exactMatchers } from "./exact.ts";
import { loginMatchers } from "./logins.ts";
import { markMatcher } from "./mark.ts";
import { redactValue } from "./plain-data.ts";
import { privateKeyMatcher } from "./private-key.ts";
import { addMatchers, emptyIndex, type Index } from "./scan.ts";
import { secretValues, type NamedValue } from "./secret-values.ts";
import { shapeMatchers } from "./shapes.ts";
import { openStream, redactBytes } from "./stream.ts";

export interface RedactorOptions {
  /** Of these, the ones whose name looks like a secret's. */
  variables: Readonly<Record<string, string | undefined>>;
  /** Secrets whatever their name. */
  values?: readonly NamedValue[];
}

/** The variables are those of now; everything else is built when the first text needs it. */
export function createRedactor({ variables, values = [] }: RedactorOptions): Redactor {
  const given = { variables: { ...variables }, values };
  const indexFor = lazyIndex(given);
  let exact: Index | null = null;
  const shortest = values.length > 0 ? shortestValue : shortestFound;

  function text(plain: string): string {
    if (plain.length < shortest) return plain;
    const bytes = Buffer.from(plain, "utf8");
    const redacted = redactBytes(indexFor(bytes.length), bytes);
    return redacted.length === bytes.length && bytes.equals(redacted) ? plain : Buffer.from(redacted).toString("utf8");
  }

  return {
    text,
    bytes: (bytes) => redactBytes(indexFor(bytes.length), bytes),
    // Of the same shape as what came in: only strings are replaced, by strings.
    value: <T>(value: T): T => redactValue(value, text) as T,
    stream: () => openStream(() => indexFor(Infinity)),
    exactBytes: (bytes) => redactBytes((exact ??= exactIndex(given)), bytes),
  };
}

/** The search works on four bytes, and no given value is shorter. */
const shortestValue = 4;
/** No variable's value and no shape is shorter: the smallest command lines need no search at all. */
const shortestFound = 6;

function exactIndex({ variables, values }: Required<RedactorOptions>): Index {
  const index = emptyIndex();
  for (const { name, value } of secretValues(variables, values)) addMatchers(index, exactMatchers(name, value));
  return index;
}

/** A text shorter than every secret cannot hold one: a short command line costs no search for them. */
function lazyIndex(options: Required<RedactorOptions>): (length: number) => Index {
  const index = emptyIndex();
  let secrets: NamedValue[] | undefined;
  let shortest = 0;
  let complete = false;
  return (length) => {
    if (secrets === undefined) {
      secrets = secretValues(options.variables, options.values);
      shortest = secrets.reduce((least, { value }) => Math.min(least, value.length), Infinity);
      addMatchers(index, [markMatcher, ...shapeMatchers(), privateKeyMatcher, ...loginMatchers(), assignmentMatcher]);
    }
    if (!complete && length >= shortest) {
      for (const { name, value } of secrets) addMatchers(index, exactMatchers(name, value));
      complete = true;
    }
    return index;
  };
}
