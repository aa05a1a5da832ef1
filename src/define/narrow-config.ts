import { type Config, defaultConfig } from "../model/config.ts";
import { isRecord } from "./merge-keys.ts";

/**
 * Reduces an untrusted drover.yaml to the settings that are stricter than the defaults. `leftOut` names the keys that
 * were dropped.
 */
export function narrowConfig(given: Config): { config: Config; leftOut: string[] } {
  const leftOut: string[] = [];
  const narrow = (value: unknown, standard: unknown, path: string): unknown => {
    if (isRecord(value) && isRecord(standard))
      return Object.fromEntries(
        Object.entries(standard).map(([key, each]) => [
          key,
          narrow(value[key], each, path === "" ? key : `${path}.${key}`),
        ]),
      );
    if (JSON.stringify(value) === JSON.stringify(standard) || tightens[path]?.(value, standard)) return value;
    leftOut.push(path);
    return standard;
  };
  // each value passed the schema or is the default
  return { config: narrow(given, defaultConfig, "") as Config, leftOut };
}

const isLess = (value: unknown, standard: unknown): boolean => Number(value) < Number(standard);

/** For each key, whether a value is stricter than the default. A key that is not listed never is. */
const tightens: Record<string, (value: unknown, standard: unknown) => boolean> = {
  "execution.default_timeout_seconds": isLess,
  "execution.max_output_kb": isLess,
  "execution.output_limit": (value) => value === "fail",
  "execution.use_shell": (value) => value === false,
  "execution.environment.deny": () => true,
  "files.max_file_mb": isLess,
  isolation: (value) => value === "pid" || value === "sandbox",
};
