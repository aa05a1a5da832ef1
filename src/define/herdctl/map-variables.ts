import { isRecord } from "../merge-keys.ts";
import { note, type Source } from "./source.ts";

/** The keys in which a runner replaces variables. */
const expanded = new Set(["system_prompt", "model", "mcp_servers", "on_finish"]);
const pattern = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** herdctl replaces variables everywhere. Elsewhere here a variable becomes its default. */
export function mapVariables(keys: Record<string, unknown>, source: Source): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(keys).map(([key, value]) => [
      key,
      expanded.has(key) ? seen(value, source) : fixed(value, key, source),
    ]),
  );
}

function seen(value: unknown, source: Source): unknown {
  for (const [, name] of JSON.stringify(value).matchAll(pattern)) source.variables.add(name!);
  return value;
}

function fixed(value: unknown, key: string, source: Source): unknown {
  if (typeof value === "string")
    return value.replaceAll(pattern, (whole, _name, fallback: string | undefined) => {
      note(
        source,
        [key],
        fallback === undefined
          ? `${whole} is not replaced in ${key}: write its value`
          : `${whole} is not replaced in ${key}: it became its default, ${JSON.stringify(fallback)}`,
      );
      return fallback ?? whole;
    });
  if (Array.isArray(value)) return value.map((one) => fixed(one, key, source));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([inner, one]) => [inner, fixed(one, key, source)]));
}
