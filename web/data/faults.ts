import { RequestError } from "../../src/model/errors.ts";
import type { Problem } from "../../src/wire/problem.ts";

/** What the coordinator refused, by the key directly below `place`: of `body.parameters.count` below `body.parameters`, `count`. */
export function faultsOf(error: unknown, place = "body"): ReadonlyMap<string, string> {
  if (!(error instanceof RequestError)) return new Map();
  // made from one by the client
  const faults = (error.cause as Problem | undefined)?.faults ?? [];
  return new Map(
    faults
      .filter(({ path }) => path.startsWith(`${place}.`))
      .map(({ path, message }) => [path.slice(place.length + 1).split(/[.[]/, 1)[0] ?? "", message]),
  );
}
