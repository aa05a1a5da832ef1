import { dirname } from "node:path";
import type { Environment } from "../../model/environment.ts";

/** The directories that a command needs to see to report to the Drover outside, according to these variables. */
export function nestedDirectories(variables: Environment): string[] {
  const { DROVER_NESTED_LOG: log, DROVER_API_URL: url } = variables;
  return [log ?? [], url?.startsWith("unix:") ? url.slice("unix:".length) : []].flat().map((path) => dirname(path));
}
