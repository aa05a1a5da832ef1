import type { Claim } from "../../model/runner-port.ts";
import { defaultMaxFileMb } from "../scaffold/choose-files.ts";

/** Lowers the profile's `max_file_mb` to the coordinator's limit, so that a larger file is left out instead of failing the run. */
export function capFileSize(claim: Claim, maxFileBytes: number): Claim {
  const { executor_config } = claim.invocation;
  const given = executor_config["max_file_mb"] ?? defaultMaxFileMb;
  const most = maxFileBytes / (1024 * 1024);
  // a value that is not a number is refused where it is used
  if (typeof given !== "number" || given <= most) return claim;
  return { ...claim, invocation: { ...claim.invocation, executor_config: { ...executor_config, max_file_mb: most } } };
}
