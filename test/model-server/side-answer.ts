import { toFields, toText } from "./json.ts";

/** The smallest value that a JSON schema allows, used as a meaningless answer. */
export function createSmallestValue(schema: unknown): unknown {
  const fields = toFields(schema);
  if (Array.isArray(fields["enum"])) return fields["enum"][0];
  if (fields["const"] !== undefined) return fields["const"];
  const type = Array.isArray(fields["type"]) ? fields["type"][0] : fields["type"];
  switch (toText(type).toLowerCase()) {
    case "string":
      return "ok";
    case "number":
    case "integer":
      // 1, because scores often start at 1, and gemini rejects 0.
      return typeof fields["minimum"] === "number" ? fields["minimum"] : 1;
    case "boolean":
      return false;
    case "array":
      return [];
    default:
      return Object.fromEntries(
        Object.entries(toFields(fields["properties"])).map(([name, inner]) => [name, createSmallestValue(inner)]),
      );
  }
}
