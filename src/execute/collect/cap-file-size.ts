import type { Claim } from "../../model/runner-port.ts";
import { defaultMaxFileMb } from "../scaffold/choose-files.ts";

/** Lowers the profile's `max_file_mb` to the coordinator's limit, so that a larger file is skipped instead of failing the run. */
export function capFileSize(claim: Claim, maxFileBytes: number): Claim {
  const { executor_config } = claim.invocation;
  const maxFileMb = executor_config["max_file_mb"] ?? defaultMaxFileMb;
  const coordinatorMaxMb = maxFileBytes / (1024 * 1024);
  // chooseFiles() rejects a value that is not a number.
  if (typeof maxFileMb !== "number" || maxFileMb <= coordinatorMaxMb) return claim;
  return {
    ...claim,
    invocation: { ...claim.invocation, executor_config: { ...executor_config, max_file_mb: coordinatorMaxMb } },
  };
}
