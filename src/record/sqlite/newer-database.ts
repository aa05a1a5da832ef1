import { HostError } from "../../model/errors.ts";
import { schemaVersion } from "./migrations/version.ts";

export function createNewerDatabaseError(file: string, version: number): HostError {
  return new HostError({
    code: "DROVER-STA-005",
    message: `The database ${file} has schema version ${version}; this version of Drover supports schema versions up to ${schemaVersion}.`,
    field: file,
    next: "Update Drover on this machine. Nothing was changed.",
  });
}
