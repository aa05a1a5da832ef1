import { type Config, defaultConfig } from "../model/config.ts";
import { isRecord } from "./merge-keys.ts";

/**
 * Reduces an untrusted drover.yaml to the settings that are stricter than the defaults. `ignoredKeys` lists the keys
 * that were dropped.
 */
export function narrowConfig(config: Config): { config: Config; ignoredKeys: string[] } {
  const ignoredKeys: string[] = [];
  const narrow = (value: unknown, standard: unknown, path: string): unknown => {
    if (isRecord(value) && isRecord(standard))
      return Object.fromEntries(
        Object.entries(standard).map(([key, standardValue]) => [
          key,
          narrow(value[key], standardValue, path === "" ? key : `${path}.${key}`),
        ]),
      );
    if (JSON.stringify(value) === JSON.stringify(standard) || isStricter[path]?.(value, standard)) return value;
    ignoredKeys.push(path);
    return standard;
  };
  // Each value passed the schema or is the default.
  return { config: narrow(config, defaultConfig, "") as Config, ignoredKeys };
}

const isLess = (value: unknown, standard: unknown): boolean => Number(value) < Number(standard);

/** For each key, whether a value is stricter than the default. A key that is not listed never is. */
const isStricter: Record<string, (value: unknown, standard: unknown) => boolean> = {
  "execution.default_timeout_seconds": isLess,
  "execution.max_output_kb": isLess,
  "execution.output_limit": (value) => value === "fail",
  "execution.use_shell": (value) => value === false,
  "execution.environment.deny": () => true,
  "files.max_file_mb": isLess,
  isolation: (value) => value === "pid" || value === "sandbox",
};
