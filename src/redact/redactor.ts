import type { Redactor, RedactStream } from "../model/process.ts";
import { assignmentMatcher } from "./assignment-matcher.ts";
import { createExactMatchers } from "./exact-matchers.ts";
import { createLoginMatchers } from "./login-matchers.ts";
import { markMatcher } from "./mark-matcher.ts";
import { redactValue } from "./redact-value.ts";
import { privateKeyMatcher } from "./private-key-matcher.ts";
import { addMatchers, createIndex, type Index } from "./scan.ts";
import { chooseSecretValues, type NamedValue } from "./secret-values.ts";
import { createShapeMatchers } from "./shape-matchers.ts";
import { openStream, redactBytes } from "./stream.ts";

export interface RedactorOptions {
  /** Only the values of variables with a sensitive name are redacted. */
  variables: Readonly<Record<string, string | undefined>>;
  /** Values to redact, whatever their names. */
  values?: readonly NamedValue[];
}

/** Copies the variables immediately. Builds the index when the first text needs it. */
export function createRedactor({ variables, values = [] }: RedactorOptions): Redactor {
  const secrets = { variables: { ...variables }, values };
  const indexFor = createLazyIndex(secrets);
  let exact: Index | null = null;
  const minTextLength = values.length > 0 ? minValueLength : minSecretLength;

  function text(plain: string): string {
    if (plain.length < minTextLength) return plain;
    const bytes = Buffer.from(plain, "utf8");
    const redacted = redactBytes(indexFor(bytes.length), bytes);
    return redacted.length === bytes.length && bytes.equals(redacted) ? plain : Buffer.from(redacted).toString("utf8");
  }

  function stream(): RedactStream {
    return openStream(() => indexFor(Infinity));
  }

  function* inPieces(plain: string): Generator<undefined, string> {
    const bytes = Buffer.from(plain, "utf8");
    const redactStream = stream();
    const pieces: Uint8Array[] = [];
    for (let from = 0; from < bytes.length; from += pieceBytes) {
      pieces.push(redactStream.push(bytes.subarray(from, from + pieceBytes)));
      yield;
    }
    const redacted = Buffer.concat([...pieces, redactStream.end()]);
    return redacted.equals(bytes) ? plain : redacted.toString("utf8");
  }

  function* valueInPieces<T>(plain: T): Generator<undefined, T> {
    // The shape is unchanged: strings are replaced only with strings.
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
    exactBytes: (bytes) => redactBytes((exact ??= createExactIndex(secrets)), bytes),
  };
}

const pieceBytes = 64 * 1024;
/** The search compares four bytes, and values in `values` are at least as long. */
const minValueLength = 4;
/** Redacted variables and token shapes are at least this long, so shorter texts need no search. */
const minSecretLength = 6;

function createExactIndex({ variables, values }: Required<RedactorOptions>): Index {
  const index = createIndex();
  for (const { name, value } of chooseSecretValues(variables, values))
    addMatchers(index, createExactMatchers(name, value));
  return index;
}

/**
 * Adds the exact values only for texts that are at least as long as the shortest value, so that short command lines
 * stay cheap.
 */
function createLazyIndex(options: Required<RedactorOptions>): (length: number) => Index {
  const index = createIndex();
  let secrets: NamedValue[] | undefined;
  let shortestLength = 0;
  let isComplete = false;
  return (length) => {
    if (secrets === undefined) {
      secrets = chooseSecretValues(options.variables, options.values);
      shortestLength = secrets.reduce((min, { value }) => Math.min(min, value.length), Infinity);
      addMatchers(index, [
        markMatcher,
        ...createShapeMatchers(),
        privateKeyMatcher,
        ...createLoginMatchers(),
        assignmentMatcher,
      ]);
    }
    if (!isComplete && length >= shortestLength) {
      for (const { name, value } of secrets) addMatchers(index, createExactMatchers(name, value));
      isComplete = true;
    }
    return index;
  };
}
