import type { Redactor, RedactStream } from "../model/process.ts";
import { assignmentMatcher } from "./assignment-matcher.ts";
import { exactMatchers } from "./exact-matchers.ts";
import { loginMatchers } from "./login-matchers.ts";
import { markMatcher } from "./mark-matcher.ts";
import { redactValue } from "./redact-value.ts";
import { privateKeyMatcher } from "./private-key-matcher.ts";
import { addMatchers, emptyIndex, type Index } from "./scan.ts";
import { secretValues, type NamedValue } from "./secret-values.ts";
import { shapeMatchers } from "./shape-matchers.ts";
import { openStream, redactBytes } from "./stream.ts";

export interface RedactorOptions {
  /** Only those with a sensitive name count. */
  variables: Readonly<Record<string, string | undefined>>;
  /** Secrets of any name. */
  values?: readonly NamedValue[];
}

/** Copies the variables now. Builds everything else when the first text needs it. */
export function createRedactor({ variables, values = [] }: RedactorOptions): Redactor {
  const given = { variables: { ...variables }, values };
  const indexFor = lazyIndex(given);
  let exact: Index | null = null;
  const minLength = values.length > 0 ? minValueLength : minFoundLength;

  function text(plain: string): string {
    if (plain.length < minLength) return plain;
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
    // the shape is unchanged: only strings are replaced, by strings
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
const minValueLength = 4;
/** No variable's value and no shape is shorter, so shorter texts need no search. */
const minFoundLength = 6;

function exactIndex({ variables, values }: Required<RedactorOptions>): Index {
  const index = emptyIndex();
  for (const { name, value } of secretValues(variables, values)) addMatchers(index, exactMatchers(name, value));
  return index;
}

/** Adds the secrets only for texts at least as long as the shortest one, so that short command lines stay cheap. */
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
