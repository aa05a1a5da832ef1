import { RequestError } from "../../model/errors.ts";

/**
 * What the runner should conclude from a failed call to the coordinator:
 * - `register`: the coordinator does not know this epoch; register again and retry
 * - `duplicate`: another live runner has this identity
 * - `down`: nothing listens at the address, so nothing expires leases either
 * - `silent`: no answer; the coordinator may still be running and expiring leases
 * - `refused`: the coordinator answered no
 */
export type PortFault = "register" | "duplicate" | "down" | "silent" | "refused";

export function portFault(error: unknown): PortFault {
  let fault: PortFault = "silent";
  // the system error is often a few causes below the port's own error
  for (
    let at = error, depth = 0;
    typeof at === "object" && at !== null && depth < 5;
    at = Reflect.get(at, "cause"), depth++
  ) {
    for (const key of ["conflict", "code", "status"] as const) {
      const found = meanings.get(String(Reflect.get(at, key)));
      if (found !== undefined) return found;
    }
    if (at instanceof RequestError) fault = "refused";
    const inner: unknown = Reflect.get(at, "errors");
    // a host with several addresses fails with one error for each
    if (Array.isArray(inner) && inner.length > 0 && inner.every((one) => portFault(one) === "down")) return "down";
  }
  return fault;
}

const meanings = new Map<string, PortFault>([
  ["old_epoch", "register"],
  ["unknown_runner", "register"],
  ["duplicate_runner", "duplicate"],
  ["unauthorized", "refused"],
  ["refused", "refused"],
  ["ECONNREFUSED", "down"],
  // The coordinator died during the call. If it only restarts, it expires no leases until it is back.
  ["ECONNRESET", "down"],
  // the socket file is missing
  ["ENOENT", "down"],
  // a proxy has no backend
  ["502", "down"],
  ["503", "down"],
  ["504", "down"],
]);
