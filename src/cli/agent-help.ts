import { withDroverCommand } from "./drover-command.ts";
import { findAgent } from "./agents.ts";
import { formatWrappedColumns } from "./help.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import type { CommandInput } from "./options.ts";
import { findProperty, listProperties, readTypes, type Types } from "./parameter-types.ts";
import { describeTypes } from "./run-parameters.ts";
import { quoteForShell } from "./shell-quote.ts";
import { replaceControlCharacters } from "./table.ts";

interface Parameter {
  name: string;
  isRequired: boolean;
  types: Types;
  /** The parameter's own schema. */
  schema: Readonly<Record<string, unknown>>;
}

/** Prints how to run one agent: an example and its parameters. */
export async function showAgentHelp(input: CommandInput, name: string): Promise<number> {
  const agent = await findAgent(input, name);
  const schema = agent.parameters_schema;
  const parameters = listParameters(schema);
  if (input.options["json"]) {
    write(1, toJsonLine({ name, description: agent.description ?? null, parameters_schema: schema ?? null }));
    return 0;
  }
  const takesPrompt = agent.type !== "procedural";
  const lines = [
    `drover run ${name}: ${replaceControlCharacters(agent.description ?? `run the agent ${name}`)}`,
    "",
    "Example",
    `  ${replaceControlCharacters(createExample(name, parameters, takesPrompt))}`,
    "",
    "Parameters",
    ...(takesPrompt ? formatWrappedColumns([["--prompt TEXT", "the task, in words"]]) : []),
    ...(parameters.length > 0 ? formatWrappedColumns(parameters.map(toParameterRow)) : takesPrompt ? [] : ["  none"]),
    ...(acceptsUnknown(schema) ? ["  Parameters with other names are passed to the agent too."] : []),
    "",
    "Run `drover run --help` for the options of every run, such as --timeout and --detach.",
    "",
  ];
  write(1, withDroverCommand(lines.join("\n")));
  return 0;
}

/** Creates example options for the required parameters of a schema. */
export function createExampleOptions(schema: Readonly<Record<string, unknown>> | null | undefined): string {
  const required = listParameters(schema).filter(({ isRequired }) => isRequired);
  return replaceControlCharacters(required.map(toExampleOption).join(" "));
}

function listParameters(schema: Readonly<Record<string, unknown>> | null | undefined): Parameter[] {
  return listProperties(schema).map(({ name, isRequired }) => {
    const property = findProperty(schema, name);
    return { name, isRequired, types: readTypes(property, schema), schema: toRecord(property) };
  });
}

function toParameterRow({ name, isRequired, types, schema }: Parameter): [string, string] {
  const facts = [
    describeType(types),
    ...(isRequired ? ["required"] : []),
    ...("default" in schema ? [`default ${toText(schema["default"])}`] : []),
  ].join(", ");
  const description = typeof schema["description"] === "string" ? `. ${schema["description"]}` : "";
  return [`--${replaceControlCharacters(name)}`, replaceControlCharacters(`${facts}${description}`)];
}

function describeType(types: Types): string {
  const { kinds, values } = types;
  if (values === null && kinds?.size === 1 && kinds.has("array")) {
    const items = describeTypes(types.items());
    return items === "" ? "a list" : `a list, each ${items}`;
  }
  return describeTypes(types) || "any value";
}

/** Creates a command that passes every required parameter or, if none is required, the first one. */
function createExample(name: string, parameters: readonly Parameter[], takesPrompt: boolean): string {
  const required = parameters.filter(({ isRequired }) => isRequired);
  const shownParameters = required.length > 0 || takesPrompt ? required : parameters.slice(0, 1);
  return [
    "drover run",
    quoteForShell(name),
    ...(takesPrompt ? ['--prompt "..."'] : []),
    ...shownParameters.map(toExampleOption),
  ].join(" ");
}

function toExampleOption(parameter: Parameter): string {
  return `${quoteForShell(`--${parameter.name}`)} ${quoteForShell(findExampleValue(parameter))}`;
}

function findExampleValue({ types, schema, name }: Parameter): string {
  const { examples } = schema;
  const knownValues = [
    ...(Array.isArray(examples) ? examples : []),
    ...("default" in schema ? [schema["default"]] : []),
  ];
  if (knownValues[0] !== undefined) return toText(knownValues[0]);
  return createExampleOfType(types) ?? name.toUpperCase();
}

function createExampleOfType({ kinds, values, items }: Types): string | null {
  if (values?.[0] !== undefined) return toText(values[0]);
  if (kinds?.has("string") || kinds === null) return null;
  if (kinds.has("integer") || kinds.has("number")) return "1";
  if (kinds.has("boolean")) return "true";
  if (kinds.has("array")) return createExampleOfType(items());
  return kinds.has("object") ? "{}" : "null";
}

/** Whether parameters that the schema does not name are allowed. */
function acceptsUnknown(schema: Readonly<Record<string, unknown>> | null | undefined): boolean {
  return schema !== null && schema !== undefined && schema["additionalProperties"] !== false;
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function toRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
