import { RequestError } from "../../model/errors.ts";

/**
 * How a call to the coordinator failed, and so how the runner reacts:
 * - `register`: the coordinator does not know this epoch; register again and retry
 * - `duplicate`: another live runner has this identity
 * - `down`: nothing listens at the address, so nothing expires leases either
 * - `silent`: no answer; the coordinator may still be running and expiring leases
 * - `refused`: the coordinator refused the request
 */
export type PortFailure = "register" | "duplicate" | "down" | "silent" | "refused";

export function classifyPortError(error: unknown): PortFailure {
  let failure: PortFailure = "silent";
  // The system error is often a few causes below the port's own error.
  for (
    let cause = error, depth = 0;
    typeof cause === "object" && cause !== null && depth < 5;
    cause = Reflect.get(cause, "cause"), depth++
  ) {
    for (const key of ["conflict", "code", "status"] as const) {
      const meaning = failureByCode.get(String(Reflect.get(cause, key)));
      if (meaning !== undefined) return meaning;
    }
    if (cause instanceof RequestError) failure = "refused";
    const errors: unknown = Reflect.get(cause, "errors");
    // A host with several addresses fails with one error for each.
    if (Array.isArray(errors) && errors.length > 0 && errors.every((inner) => classifyPortError(inner) === "down"))
      return "down";
  }
  return failure;
}

const failureByCode = new Map<string, PortFailure>([
  ["old_epoch", "register"],
  ["unknown_runner", "register"],
  ["duplicate_runner", "duplicate"],
  ["unauthorized", "refused"],
  ["refused", "refused"],
  ["ECONNREFUSED", "down"],
  // The coordinator died during the call. If it only restarts, it expires no leases until it is back.
  ["ECONNRESET", "down"],
  // The socket file is missing.
  ["ENOENT", "down"],
  // A proxy has no backend.
  ["502", "down"],
  ["503", "down"],
  ["504", "down"],
]);
