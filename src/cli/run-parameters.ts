import type { Agent } from "../model/agent.ts";
import { RequestError } from "../model/errors.ts";
import { findInexactNumber, isExactNumber } from "../model/exact-numbers.ts";
import { findProperty, type Kind, readTypes, type Types } from "./parameter-types.ts";

/** Parses `--key value` options as parameters of an agent, using the types of its schema. */
export function readParameters(
  extraOptions: readonly (readonly [name: string, value: string | true])[],
  json: string | undefined,
  schema: Agent["parameters_schema"],
): Record<string, unknown> {
  const parameters: Record<string, unknown> = json === undefined ? {} : parseParameters("--params", json);
  const given = new Map<string, (string | true)[]>();
  for (const [name, value] of extraOptions) given.set(name, [...(given.get(name) ?? []), value]);
  for (const [name, values] of given) {
    if (Object.hasOwn(parameters, name))
      throw fault(`--${name}`, `${name} was given twice: as --${name} and in --params.`);
    const property = findProperty(schema, name) ?? schema?.["additionalProperties"];
    parameters[name] = typed(`--${name}`, values, readTypes(property, schema));
  }
  return parameters;
}

function typed(option: string, values: (string | true)[], types: Types): unknown {
  const isList = types.kinds?.has("array") === true;
  const [value = true, ...more] = values;
  if (more.length > 0 && !isList)
    throw fault(option, `${option} was given ${values.length} times, but the agent takes one value.`);
  if (more.length > 0) return values.map((item) => typedOne(option, item, types.items()));
  const accepted = attempt(value, types);
  if (accepted !== undefined) return accepted.value;
  if (!isList) return typedOne(option, value, types);
  if (typeof value === "string" && value.trimStart().startsWith("[")) return parseJson(option, value);
  const items = types.items();
  // Only strings may contain commas, so other lists are split at them.
  const words = typeof value === "string" && items.kinds && !items.kinds.has("string") ? value.split(",") : [value];
  return words.map((item) => typedOne(option, item, items));
}

function typedOne(option: string, value: string | true, types: Types): unknown {
  const accepted = attempt(value, types);
  if (accepted !== undefined) return accepted.value;
  if (value === true) throw fault(option, `${option} needs a value.`);
  if (types.kinds?.has("object") || types.kinds?.has("array")) return parseJson(option, value);
  if (isNumber(value) && !isExactNumber(value) && (types.kinds?.has("integer") || types.kinds?.has("number")))
    throw inexact(option, value);
  throw fault(option, `${option} ${value} is not ${describe(types)}.`);
}

/** undefined if the argument does not match any of these types. */
function attempt(value: string | true, { kinds, values }: Types): { value: unknown } | undefined {
  if (values !== null) {
    const found = values.filter((each) => (typeof each === "string" ? each : JSON.stringify(each)) === String(value));
    return found.length > 0 ? { value: found[0] } : undefined;
  }
  if (kinds === null) return { value };
  const is = (kind: Kind): boolean => kinds.has(kind);
  if (is("boolean") && (value === true || value === "true" || value === "false"))
    return { value: String(value) === "true" };
  if (value === true) return undefined;
  if (is("null") && value === "null") return { value: null };
  if (isNumber(value) && isExactNumber(value)) {
    if (is("number") || (is("integer") && Number.isInteger(Number(value)))) return { value: Number(value) };
  }
  return is("string") ? { value } : undefined;
}

const words: Record<Kind, string> = {
  null: "null",
  boolean: "true or false",
  integer: "a whole number",
  number: "a number",
  string: "text",
  array: "a list",
  object: "a JSON object",
};

function describe({ kinds, values }: Types): string {
  const all = values?.map((value) => (typeof value === "string" ? value : JSON.stringify(value)));
  return all ? `one of ${all.join(", ")}` : [...(kinds ?? [])].map((kind) => words[kind]).join(" or ");
}

function isNumber(text: string): boolean {
  return text.trim() !== "" && !Number.isNaN(Number(text));
}

/** Parses the parameters from one JSON object. */
export function parseParameters(field: string, text: string, code: FaultCode = "DROVER-USE-001") {
  const value = parseJson(field, text, code);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw fault(field, `${field} is not a JSON object.`, code);
  return { ...value } as Record<string, unknown>;
}

function parseJson(option: string, text: string, code?: FaultCode): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw fault(option, `${option} is not valid JSON: ${why}.`, code);
  }
  const found = findInexactNumber(text);
  if (found) throw inexact([option, ...found.path].join("."), found.text);
  return value;
}

function inexact(field: string, text: string): RequestError {
  return new RequestError({
    code: "DROVER-PAR-005",
    field,
    message: `${field}: a JSON number cannot represent ${text} exactly.`,
    next: "Send it as a string; the agent's parameters_schema must accept one.",
  });
}

type FaultCode = "DROVER-USE-001" | "DROVER-PAR-006";

function fault(field: string, message: string, code: FaultCode = "DROVER-USE-001"): RequestError {
  return new RequestError({
    code,
    field,
    message,
    next:
      code === "DROVER-PAR-006"
        ? `Give one JSON object in UTF-8, as in: echo '{"NAME": "value"}' | drover agent-executor SPEC WORKSPACE`
        : "Run `drover agents show AGENT` to see its parameters.",
  });
}
