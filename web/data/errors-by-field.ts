import { RequestError } from "../../src/model/errors.ts";
import type { Problem } from "../../src/wire/problem.ts";

/**
 * The coordinator's validation messages, keyed by the first field below `prefix`. With the prefix `body.parameters`, a
 * fault at `body.parameters.count` has the key `count`.
 */
export function getErrorsByField(error: unknown, prefix = "body"): ReadonlyMap<string, string> {
  if (!(error instanceof RequestError)) return new Map();
  // The client sets the problem document as the cause.
  const faults = (error.cause as Problem | undefined)?.faults ?? [];
  return new Map(
    faults
      .filter(({ path }) => path.startsWith(`${prefix}.`))
      .map(({ path, message }) => [path.slice(prefix.length + 1).split(/[.[]/, 1)[0] ?? "", message]),
  );
}
