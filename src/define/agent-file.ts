import { extname } from "node:path";
import { type Agent, agentSchema, slugify } from "../model/agent.ts";
import { splitPointer } from "../model/json-pointer.ts";
import type { DefinitionFault } from "../model/definition-fault.ts";
import type { ErrorCode } from "../model/errors.ts";
import { checkShape, type Origin } from "./check-shape.ts";
import { checkSchedules } from "./check-schedules.ts";
import { checkSchemaLimits } from "./json-schema/limits.ts";
import { splitMarkdown } from "./markdown.ts";
import { type ListedParameters, toParametersSchema } from "./markdown-parameters.ts";
import { parseJson, parseYaml, type TextFault } from "./structured-text.ts";

type SchemaKey = "parameters_schema" | "output_schema";

/** `schemas` are the schemas within the size limits. `checkSchemas` later checks that they are valid JSON Schemas. */
export type ParsedAgent = { origin: Origin; schemas: [SchemaKey, object][] } & (
  | { ok: true; agent: Agent }
  | { ok: false; faults: DefinitionFault[] }
);

export const agentFileEndings = [".md", ".json", ".yaml", ".yml"];

/** The keys an agent's text contains, before validation. */
export interface AgentText {
  value: unknown;
  origin: Origin;
  /** Adds the faults of the text itself, e.g. a missing markdown title. */
  addTextFaults(checked: ParsedAgent): ParsedAgent;
}

/** Parses an agent file. The file's extension selects the format. */
export function parseAgentFile(file: string, text: string): ParsedAgent {
  const parsed = parseAgentText(file, text);
  return "ok" in parsed ? parsed : parsed.addTextFaults(checkAgent(parsed.value, parsed.origin));
}

export function parseAgentText(file: string, text: string): AgentText | Extract<ParsedAgent, { ok: false }> {
  const ending = extname(file).toLowerCase();
  if (ending === ".md") return parseMarkdownAgent(file, text);
  const parsed = ending === ".json" ? parseJson(text.replace(/^\uFEFF/, "")) : parseYaml(text);
  if (!parsed.ok) return createParseFailure(file, `not valid ${ending === ".json" ? "JSON" : "YAML"}`, parsed.faults);
  return { value: parsed.value, origin: { ...parsed, file }, addTextFaults: (checked) => checked };
}

/** Applies the rules of agent files to a definition from any source. Reports all faults, not just the first. */
export function checkAgent(value: unknown, origin: Origin = { file: null, findLine: null }): ParsedAgent {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const next = "Write an object with at least name, and command or system_prompt.";
    return createFailure(origin, [
      createFault("DROVER-AGT-004", origin, [], "an agent must be an object of keys and values", next),
    ]);
  }
  const hasCommand = "command" in value && value.command !== null && value.command !== undefined;
  const definition: Record<string, unknown> = { type: hasCommand ? "procedural" : "autonomous", ...value };
  const checked = checkShape(definition, agentShape, origin);
  const schemaChecks = (["parameters_schema", "output_schema"] as const).flatMap((key) => {
    const schema = definition[key];
    if (typeof schema !== "object" || schema === null) return [];
    return [
      {
        key,
        schema,
        faults: checkSchemaLimits(schema).map((limitFault) => createSchemaFault(key, limitFault, origin)),
      },
    ];
  });
  const faults = [
    ...(checked.ok ? [] : checked.faults),
    ...checkType(definition, hasCommand, origin),
    ...schemaChecks.flatMap((entry) => entry.faults),
    ...checkSchedules(definition, origin),
  ];
  const schemas = schemaChecks.flatMap((entry): [SchemaKey, object][] =>
    entry.faults.length > 0 ? [] : [[entry.key, entry.schema]],
  );
  return checked.ok && faults.length === 0
    ? { ok: true, agent: checked.value, origin, schemas }
    : { ok: false, faults, origin, schemas };
}

function createFailure(origin: Origin, faults: DefinitionFault[]): Extract<ParsedAgent, { ok: false }> {
  return { ok: false, faults, origin, schemas: [] };
}

export const agentShape = {
  schema: agentSchema,
  unknownKey: "DROVER-AGT-003",
  wrongValue: "DROVER-AGT-004",
  manual: "docs/agents.md",
} as const;

function parseMarkdownAgent(file: string, text: string): ReturnType<typeof parseAgentText> {
  const parts = splitMarkdown(text);
  if (!parts.ok) return createParseFailure(file, "not a markdown agent", parts.faults);
  const { fields, title, titleLine, systemPrompt, sections, inexact, parameters } = parts;
  const origin: Origin = {
    file,
    inexact,
    findLine(path) {
      const [key, , name] = path;
      if (typeof fields === "object" && fields !== null && String(key) in fields) return parts.findLine(path);
      const listed = key === "parameters_schema" && parameters.parameters.find((parameter) => parameter.name === name);
      return listed ? listed.line : titleLine;
    },
  };
  if (typeof fields !== "object" || fields === null || Array.isArray(fields))
    return { value: fields, origin, addTextFaults: (checked) => checked };
  const bodyKeys = {
    ...(title !== null && { name: slugify(title), title }),
    ...(systemPrompt !== "" && { system_prompt: systemPrompt }),
    ...(sections !== "" && { first_message: sections }),
    ...(parameters.parameters.length > 0 && { parameters_schema: toParametersSchema(parameters.parameters) }),
  };
  const duplicates = (["title", "system_prompt", "first_message"] as const)
    .filter((key) => key in bodyKeys && key in fields)
    .map((key) =>
      createFault(
        "DROVER-AGT-004",
        origin,
        [key],
        `${key} is set in both the front matter and the text`,
        "Keep one of them.",
      ),
    );
  const lacksTitle = title === null && !("name" in fields);
  return {
    value: { ...bodyKeys, ...fields },
    origin,
    addTextFaults(checked) {
      const faults = [
        ...(lacksTitle
          ? [createFault("DROVER-AGT-004", origin, ["name"], missingTitle, "Start the text with # and the name.")]
          : []),
        ...duplicates,
        ...checkListedParameters(file, parameters, fields),
        // The missing title is already reported above, so skip the missing name.
        ...(checked.ok ? [] : checked.faults.filter(({ path }) => !(lacksTitle && path === "name"))),
      ];
      return faults.length === 0 ? checked : { ...checked, ok: false, faults };
    },
  };
}

const missingTitle = "the title is missing: a line like `# Code Review`, which names the agent";

/**
 * Reports listed parameters that cannot be parsed, or that are missing from the `parameters_schema` of the front matter.
 */
function checkListedParameters(
  file: string,
  { parameters, faults }: ListedParameters,
  fields: object,
): DefinitionFault[] {
  const schema: unknown = Reflect.get(fields, "parameters_schema");
  const properties: unknown = typeof schema === "object" && schema !== null ? Reflect.get(schema, "properties") : null;
  const undeclared =
    typeof properties === "object" && properties !== null
      ? parameters.filter(({ name }) => !Object.hasOwn(properties, name))
      : [];
  return [
    ...faults,
    ...undeclared.map(({ name, line }) => ({
      line,
      problem: `${name} is listed here but missing from parameters_schema`,
    })),
  ].map(({ line, problem }) => ({
    code: "DROVER-AGT-004",
    file,
    line,
    path: "parameters_schema",
    message: `## Parameters: ${problem}`,
    next: `Fix line ${line}.`,
  }));
}

/**
 * Keys that only agents of this type use. A markdown agent's text is allowed in both: in a procedural agent it is
 * documentation.
 */
const keysOnlyFor = {
  autonomous: [
    "provider",
    "model",
    "script",
    "permissions",
    "mcp_servers",
    "max_turns",
    "budget",
    "workspace",
    "trust_project_settings",
  ],
  procedural: ["list_style", "output_schema"],
};

function checkType(definition: Record<string, unknown>, hasCommand: boolean, origin: Origin): DefinitionFault[] {
  const { type } = definition;
  const createKeyFault = (key: string, message: string, next: string) =>
    createFault("DROVER-AGT-004", origin, [key], message, next);
  const faults: DefinitionFault[] = [];
  if (type === "procedural" && !hasCommand)
    faults.push(
      createKeyFault("command", "a procedural agent needs a command", "Add command, or set type to autonomous."),
    );
  if (type === "autonomous" && hasCommand)
    faults.push(
      createKeyFault("command", "an autonomous agent has no command", "Remove command, or set type to procedural."),
    );
  // Definitions from the API already contain these defaults, which their authors did not choose.
  const defaults: Record<string, unknown> = { list_style: "comma", trust_project_settings: false };
  for (const key of findIgnoredKeys(definition))
    if (definition[key] !== undefined && definition[key] !== defaults[key])
      faults.push(createKeyFault(key, `${key} has no effect on an agent of type ${String(type)}`, "Remove it."));
  return faults;
}

/** The keys that have no effect in an agent of this type. A custom executor gets all keys and may use any of them. */
export function findIgnoredKeys({ type, executor }: Record<string, unknown>): readonly string[] {
  if (type === "procedural" && (executor === undefined || executor === "procedural")) return keysOnlyFor.autonomous;
  return type === "autonomous" && codingAgents.has(executor) ? keysOnlyFor.procedural : [];
}

const codingAgents = new Set<unknown>(["claude", "codex", "gemini", "code-review"]);

export function createSchemaFault(
  key: SchemaKey,
  { path, message }: { path: string; message: string },
  origin: Origin,
  schema: unknown = null,
): DefinitionFault {
  const steps = path === "" ? locateKeyword(message, schema) : splitPointer(path);
  const next = "Fix the schema; JSON Schema 2020-12, draft-07 and draft-06 are supported.";
  return createFault("DROVER-AGT-006", origin, [key, ...steps], `${[key, ...steps].join(".")} ${message}`, next);
}

/** Finds the first occurrence of an unknown keyword. The checker reports its name but not its location. */
function locateKeyword(message: string, schema: unknown): string[] {
  const keyword = /unknown keyword: "(.*)"/.exec(message)?.[1];
  let level: [steps: string[], value: unknown][] = [[[], schema]];
  while (keyword !== undefined && level.length > 0) {
    level = level.flatMap(([steps, value]) =>
      typeof value === "object" && value !== null
        ? Object.entries(value).map(([key, inner]): [string[], unknown] => [[...steps, key], inner])
        : [],
    );
    const match = level.find(([steps]) => steps.at(-1) === keyword && steps.at(-2) !== "properties");
    if (match) return match[0];
  }
  return [];
}

function createFault(
  code: ErrorCode,
  { file, findLine }: Origin,
  path: string[],
  message: string,
  next: string,
): DefinitionFault {
  return { code, file, line: findLine?.(path) ?? null, path: path.join("."), message, next };
}

function createParseFailure(
  file: string,
  problemKind: string,
  faults: readonly (TextFault & { next?: string })[],
): Extract<ParsedAgent, { ok: false }> {
  return createFailure(
    { file, findLine: null },
    faults.map(({ line, problem, next, exceedsLimit }) => ({
      code: exceedsLimit ? "DROVER-AGT-009" : "DROVER-AGT-002",
      file,
      line,
      path: "",
      message: `the file is ${exceedsLimit ? "over a limit" : problemKind}: ${problem}`,
      next:
        next ??
        `${exceedsLimit ? "Make it smaller" : `Fix line ${line}`}; \`drover agents check\` reads the file again.`,
    })),
  );
}
