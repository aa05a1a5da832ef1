import { dirname } from "node:path";
import type { Environment } from "../../model/environment.ts";
import { isNestedDirectory } from "../../model/state-layout.ts";

/**
 * The directories that a command with these variables must see to report to the outer Drover. A socket
 * anywhere else, such as the coordinator's in the record, does not make its directory visible.
 */
export function findNestedDirectories(variables: Environment): string[] {
  const { DROVER_NESTED_LOG: log, DROVER_API_URL: url } = variables;
  return [log ?? [], url?.startsWith("unix:") ? url.slice("unix:".length) : []]
    .flat()
    .map((path) => dirname(path))
    .filter(isNestedDirectory);
}
