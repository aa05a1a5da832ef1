import type { ProcessEnd } from "../../model/process.ts";
import type { FailureReason } from "../../model/states.ts";

/** Returns the failure reason of a run whose process ended with this error and signal. */
export function toFailureReason({ error, signal }: Pick<ProcessEnd, "error" | "signal">): FailureReason {
  switch (error?.code) {
    case "DROVER-EXE-001":
      return "command_not_found";
    case "DROVER-EXE-002":
      return "timeout";
    case "DROVER-EXE-003":
      return signal ? "signalled" : "exit_nonzero";
    case "DROVER-EXE-004":
    case "DROVER-EXE-009":
      return "limit_exceeded";
    case "DROVER-EXE-005":
    case "DROVER-EXE-006":
      return "refused";
    case "DROVER-EXE-007":
      return "isolation_unavailable";
    case "DROVER-EXE-008":
      return "dependency_missing";
    default:
      return "internal";
  }
}
