import { isRecord } from "../merge-keys.ts";
import { note, type Source } from "./source.ts";

/** The keys in which a runner expands variables. */
const expandedKeys = new Set(["system_prompt", "model", "mcp_servers", "on_finish"]);
const variablePattern = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** herdctl expands variables in all keys. In keys where Drover does not, replaces each variable with its default. */
export function mapVariables(keys: Record<string, unknown>, source: Source): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(keys).map(([key, value]) => [
      key,
      expandedKeys.has(key) ? collectVariables(value, source) : replaceWithDefaults(value, key, source),
    ]),
  );
}

function collectVariables(value: unknown, source: Source): unknown {
  for (const [, name] of JSON.stringify(value).matchAll(variablePattern)) source.variables.add(name!);
  return value;
}

function replaceWithDefaults(value: unknown, key: string, source: Source): unknown {
  if (typeof value === "string")
    return value.replaceAll(variablePattern, (whole, _name, fallback: string | undefined) => {
      note(
        source,
        [key],
        fallback === undefined
          ? `${whole} is not expanded in ${key}: write its value`
          : `${whole} is not expanded in ${key}: it became its default, ${JSON.stringify(fallback)}`,
      );
      return fallback ?? whole;
    });
  if (Array.isArray(value)) return value.map((item) => replaceWithDefaults(item, key, source));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([inner, item]) => [inner, replaceWithDefaults(item, key, source)]),
  );
}
