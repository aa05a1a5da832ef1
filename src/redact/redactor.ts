import type { Redactor, RedactStream } from "../model/process.ts";
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

  function stream(): RedactStream {
    return openStream(() => indexFor(Infinity));
  }

  function* inPieces(plain: string): Generator<undefined, string> {
    const bytes = Buffer.from(plain, "utf8");
    const open = stream();
    const pieces: Uint8Array[] = [];
    for (let from = 0; from < bytes.length; from += pieceBytes) {
      pieces.push(open.push(bytes.subarray(from, from + pieceBytes)));
      yield;
    }
    const redacted = Buffer.concat([...pieces, open.end()]);
    return redacted.equals(bytes) ? plain : redacted.toString("utf8");
  }

  function* valueInPieces<T>(plain: T): Generator<undefined, T> {
    // Of the same shape as what came in: only strings are replaced, by strings.
    return (yield* redactValue(plain, { text, inPieces })) as T;
  }

  function value<T>(plain: T): T {
    const pieces = valueInPieces(plain);
    for (;;) {
      const next = pieces.next();
      if (next.done === true) return next.value;
    }
  }

  return {
    text,
    bytes: (bytes) => redactBytes(indexFor(bytes.length), bytes),
    value,
    valueInPieces,
    stream,
    exactBytes: (bytes) => redactBytes((exact ??= exactIndex(given)), bytes),
  };
}

const pieceBytes = 64 * 1024;
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
