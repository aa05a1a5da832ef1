import { dirname } from "node:path";

/** What a command with these variables has to see, of everything that runs reach Drover by. */
export function nestedDirectories(variables: Readonly<Record<string, string | undefined>>): string[] {
  const { DROVER_NESTED_LOG: log, DROVER_API_URL: url } = variables;
  return [log ?? [], url?.startsWith("unix:") ? url.slice("unix:".length) : []].flat().map((path) => dirname(path));
}
