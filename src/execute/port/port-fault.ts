import { RequestError } from "../../model/errors.ts";

/**
 * What a failed call of the runner port means for the runner:
 * - `register`: the coordinator does not know this epoch (any more): register again, then go on
 * - `duplicate`: another live runner has this identity
 * - `down`: nobody listens there at all, so nobody judges leases either
 * - `silent`: no answer; whoever is behind may well be judging leases
 * - `refused`: an answer, and it was no
 */
export type PortFault = "register" | "duplicate" | "down" | "silent" | "refused";

export function portFault(error: unknown): PortFault {
  let fault: PortFault = "silent";
  // the cause of a cause tells why: a system error below the port's own word for it
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
    // a host with several addresses: each refused in turn
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
  // whoever held the other end died in the middle; one that only went away judges nobody until it is back
  ["ECONNRESET", "down"],
  // a socket file that is not there
  ["ENOENT", "down"],
  // a proxy's word that nobody is behind it
  ["502", "down"],
  ["503", "down"],
  ["504", "down"],
]);
