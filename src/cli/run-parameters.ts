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
  const valuesByName = new Map<string, (string | true)[]>();
  for (const [name, value] of extraOptions) valuesByName.set(name, [...(valuesByName.get(name) ?? []), value]);
  for (const [name, values] of valuesByName) {
    if (Object.hasOwn(parameters, name))
      throw parameterError(`--${name}`, `${name} was passed twice: as --${name} and in --params.`);
    const property = findProperty(schema, name) ?? schema?.["additionalProperties"];
    parameters[name] = parseValues(`--${name}`, values, readTypes(property, schema));
  }
  return parameters;
}

function parseValues(option: string, values: (string | true)[], types: Types): unknown {
  const isList = types.kinds?.has("array") === true;
  const [value = true, ...otherValues] = values;
  if (otherValues.length > 0 && !isList)
    throw parameterError(option, `${option} was passed ${values.length} times, but the agent takes one value.`);
  if (otherValues.length > 0) return values.map((item) => parseValue(option, item, types.items()));
  const accepted = tryParse(value, types);
  if (accepted !== undefined) return accepted.value;
  if (!isList) return parseValue(option, value, types);
  if (typeof value === "string" && value.trimStart().startsWith("[")) return parseJson(option, value);
  const items = types.items();
  // Only strings may contain commas, so other lists are split at them.
  const parts = typeof value === "string" && items.kinds && !items.kinds.has("string") ? value.split(",") : [value];
  return parts.map((item) => parseValue(option, item, items));
}

function parseValue(option: string, value: string | true, types: Types): unknown {
  const accepted = tryParse(value, types);
  if (accepted !== undefined) return accepted.value;
  if (value === true) throw parameterError(option, `${option} needs a value.`);
  if (types.kinds?.has("object") || types.kinds?.has("array")) return parseJson(option, value);
  if (isNumber(value) && !isExactNumber(value) && (types.kinds?.has("integer") || types.kinds?.has("number")))
    throw inexactNumber(option, value);
  throw parameterError(option, `${option} ${value} is not ${describeTypes(types)}.`);
}

/** Returns undefined if the argument does not match any of these types. */
function tryParse(value: string | true, { kinds, values }: Types): { value: unknown } | undefined {
  if (values !== null) {
    const matches = values.filter(
      (allowed) => (typeof allowed === "string" ? allowed : JSON.stringify(allowed)) === String(value),
    );
    return matches.length > 0 ? { value: matches[0] } : undefined;
  }
  if (kinds === null) return { value };
  const accepts = (kind: Kind): boolean => kinds.has(kind);
  if (accepts("boolean") && (value === true || value === "true" || value === "false"))
    return { value: String(value) === "true" };
  if (value === true) return undefined;
  if (accepts("null") && value === "null") return { value: null };
  if (isNumber(value) && isExactNumber(value)) {
    if (accepts("number") || (accepts("integer") && Number.isInteger(Number(value)))) return { value: Number(value) };
  }
  return accepts("string") ? { value } : undefined;
}

const kindNames: Record<Kind, string> = {
  null: "null",
  boolean: "true or false",
  integer: "a whole number",
  number: "a number",
  string: "text",
  array: "a list",
  object: "a JSON object",
};

/** Names the values that a parameter accepts, such as "a whole number" or "one of low, high". */
export function describeTypes({ kinds, values }: Types): string {
  const allowedValues = values?.map((value) => (typeof value === "string" ? value : JSON.stringify(value)));
  return allowedValues
    ? `one of ${allowedValues.join(", ")}`
    : [...(kinds ?? [])].map((kind) => kindNames[kind]).join(" or ");
}

function isNumber(text: string): boolean {
  return text.trim() !== "" && !Number.isNaN(Number(text));
}

/** Parses the parameters from one JSON object. */
export function parseParameters(field: string, text: string, code: FaultCode = "DROVER-USE-001") {
  const value = parseJson(field, text, code);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw parameterError(field, `${field} is not a JSON object.`, code);
  return { ...value } as Record<string, unknown>;
}

function parseJson(option: string, text: string, code?: FaultCode): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw parameterError(option, `${option} is not valid JSON: ${reason}.`, code);
  }
  const inexact = findInexactNumber(text);
  if (inexact) throw inexactNumber([option, ...inexact.path].join("."), inexact.text);
  return value;
}

function inexactNumber(field: string, text: string): RequestError {
  return new RequestError({
    code: "DROVER-PAR-005",
    field,
    message: `${field}: JavaScript cannot represent the number ${text} exactly.`,
    next: "Send it as a string; the agent's parameters_schema must accept one.",
  });
}

/** The next step of an error about a parameter. `drover run` replaces AGENT with the agent's name. */
export const parametersHelp = "See `drover run AGENT --help`.";

type FaultCode = "DROVER-USE-001" | "DROVER-PAR-006";

function parameterError(field: string, message: string, code: FaultCode = "DROVER-USE-001"): RequestError {
  return new RequestError({
    code,
    field,
    message,
    next:
      code === "DROVER-PAR-006"
        ? `Pass one JSON object in UTF-8, as in: echo '{"NAME": "value"}' | drover agent-executor SPEC WORKSPACE`
        : parametersHelp,
  });
}
