import type { Agent } from "../model/agent.ts";
import { RequestError } from "../model/errors.ts";

/** `--key value` words as the parameters of an agent, each typed as its schema says. */
export function readParameters(
  others: readonly (readonly [name: string, value: string | true])[],
  json: string | undefined,
  schema: Agent["parameters_schema"],
): Record<string, unknown> {
  const parameters: Record<string, unknown> = json === undefined ? {} : parseObject(json);
  const given = new Map<string, (string | true)[]>();
  for (const [name, value] of others) given.set(name, [...(given.get(name) ?? []), value]);
  for (const [name, values] of given) {
    if (Object.hasOwn(parameters, name))
      throw fault(`--${name}`, `${name} is given twice: as --${name} and in --params.`);
    parameters[name] = typed(name, values, typeOf(schema, name));
  }
  return parameters;
}

function typed(name: string, values: (string | true)[], type: string | null): unknown {
  if (type === "array")
    return values.length === 1 && isJson(values[0]!, "[") ? parseJson(name, values[0]!) : values.map(String);
  if (values.length > 1)
    throw fault(`--${name}`, `--${name} is given ${values.length} times, and the agent takes one.`);
  const value = values[0]!;
  switch (type) {
    case "boolean":
      if (value === true || value === "true") return true;
      if (value === "false") return false;
      throw fault(`--${name}`, `--${name} ${value} is not true or false.`);
    case "integer":
    case "number":
      if (value !== true && value.trim() !== "" && Number.isFinite(Number(value))) return Number(value);
      throw fault(`--${name}`, `--${name} ${value === true ? "without a value" : value} is not a number.`);
    case "object":
      return parseJson(name, value);
    case "string":
      if (value === true) throw fault(`--${name}`, `--${name} needs a value.`);
      return value;
    default:
      return value;
  }
}

/** Whether the schema names this parameter, where it says so plainly. */
export function declares(schema: Agent["parameters_schema"], name: string): boolean {
  const properties = schema?.["properties"];
  return typeof properties === "object" && properties !== null && Object.hasOwn(properties, name);
}

/** Only what is plainly said: a schema that is more involved is judged by the coordinator. */
function typeOf(schema: Agent["parameters_schema"], name: string): string | null {
  if (!declares(schema, name)) return null;
  const property: unknown = Reflect.get(schema?.["properties"] as object, name); // declared, hence an object
  if (typeof property !== "object" || property === null) return null;
  const type: unknown = Reflect.get(property, "type");
  return typeof type === "string" ? type : null;
}

function parseObject(text: string): Record<string, unknown> {
  const value = parseJson("params", text);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw fault("--params", "--params is not a JSON object.");
  return { ...value };
}

function parseJson(name: string, text: string | true): unknown {
  try {
    return JSON.parse(String(text));
  } catch (error) {
    throw fault(`--${name}`, `--${name} is not valid JSON: ${error instanceof Error ? error.message : String(error)}.`);
  }
}

function isJson(value: string | true, begin: string): boolean {
  return typeof value === "string" && value.trimStart().startsWith(begin);
}

function fault(field: string, message: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    field,
    message,
    next: "See what it takes: drover agents show AGENT",
  });
}
