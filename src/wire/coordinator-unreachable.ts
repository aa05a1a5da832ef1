import { HostError } from "../model/errors.ts";

export function coordinatorUnreachable(url: string, cause: unknown): HostError {
  const reason =
    cause instanceof Error ? (cause.cause instanceof Error ? cause.cause.message : cause.message) : String(cause);
  return new HostError({
    code: "DROVER-API-023",
    message: `The coordinator at ${url} did not respond: ${reason}`,
    next: "Check that it is running (`drover up`) and that DROVER_API_URL is its address.",
    cause,
  });
}
