import { type Config, defaultConfig } from "../model/config.ts";

/**
 * What a drover.yaml may say that nobody trusts: it can tighten, and nothing else. `leftOut` names the keys that would
 * have changed something.
 */
export function narrowConfig(given: Config): { config: Config; leftOut: string[] } {
  const leftOut: string[] = [];
  const narrow = (value: unknown, standard: unknown, path: string): unknown => {
    if (isSection(value) && isSection(standard))
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
  // each value is one that the schema has checked, or the default in its place
  return { config: narrow(given, defaultConfig, "") as Config, leftOut };
}

const isLess = (value: unknown, standard: unknown): boolean => Number(value) < Number(standard);

/** Per key: is this value tighter than the default? A key that is not here never is. */
const tightens: Record<string, (value: unknown, standard: unknown) => boolean> = {
  "execution.default_timeout_seconds": isLess,
  "execution.max_output_kb": isLess,
  "execution.output_limit": (value) => value === "fail",
  "execution.use_shell": (value) => value === false,
  "execution.environment.deny": () => true,
  "files.max_file_mb": isLess,
  isolation: (value) => value === "pid" || value === "sandbox",
};

function isSection(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
