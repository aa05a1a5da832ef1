import type { Redactor } from "../model/process.ts";
import { assignmentMatcher } from "./assignments.ts";
import { exactMatchers } from "./exact.ts";
import { loginMatchers } from "./logins.ts";
import { markMatcher } from "./mark.ts";
import { redactValue } from "./plain-data.ts";
import { privateKeyMatcher } from "./private-key.ts";
import { buildIndex, type Index } from "./scan.ts";
import { secretValues, type NamedValue } from "./secret-values.ts";
import { shapeMatchers } from "./shapes.ts";
import { openStream, redactBytes } from "./stream.ts";

export interface RedactorOptions {
  /** Of these, the ones whose name looks like a secret's. */
  variables: Readonly<Record<string, string | undefined>>;
  /** Secrets whatever their name. */
  values?: readonly NamedValue[];
}

/** The variables are those of now; everything else is built on first use. */
export function createRedactor({ variables, values = [] }: RedactorOptions): Redactor {
  const given = { ...variables };
  let built: Index | undefined;
  const index = (): Index => (built ??= indexOf(secretValues(given, values)));

  function text(plain: string): string {
    if (plain.length < shortestText) return plain;
    const bytes = Buffer.from(plain, "utf8");
    const redacted = redactBytes(index(), bytes);
    return redacted.length === bytes.length && bytes.equals(redacted) ? plain : Buffer.from(redacted).toString("utf8");
  }

  return {
    text,
    bytes: (bytes) => redactBytes(index(), bytes),
    // Of the same shape as what came in: only strings are replaced, by strings.
    value: <T>(value: T): T => redactValue(value, text) as T,
    stream: () => openStream(index),
  };
}

/** The search works on four bytes, and no secret is shorter. */
const shortestText = 4;

function indexOf(secrets: readonly NamedValue[]): Index {
  const exact = secrets.flatMap(({ name, value }) => exactMatchers(name, value));
  return buildIndex([
    markMatcher,
    ...exact,
    ...shapeMatchers(),
    privateKeyMatcher,
    ...loginMatchers(),
    assignmentMatcher,
  ]);
}
