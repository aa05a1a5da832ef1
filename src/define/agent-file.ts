import { extname } from "node:path";
import { type Agent, agentSchema, slugOf } from "../model/agent.ts";
import type { DefinitionFault } from "../model/definition-fault.ts";
import type { ErrorCode } from "../model/errors.ts";
import { checkShape, type Origin } from "./check-shape.ts";
import { schemaLimitFaults } from "./json-schema/limits.ts";
import { splitMarkdown } from "./markdown.ts";
import { readJson, readYaml } from "./structured-text.ts";

export type ParsedAgent = { ok: true; agent: Agent; origin: Origin } | { ok: false; faults: DefinitionFault[] };

export const agentFileEndings = [".md", ".json", ".yaml", ".yml"];

/** An agent from the text of its file; what kind of text it is, the file's ending says. */
export function parseAgentFile(file: string, text: string): ParsedAgent {
  const ending = extname(file).toLowerCase();
  if (ending === ".md") return parseMarkdownAgent(file, text);
  const read = ending === ".json" ? readJson(text.replace(/^\uFEFF/, "")) : readYaml(text);
  if (!read.ok)
    return {
      ok: false,
      faults: [notReadable(file, read.line, `is not valid ${ending === ".json" ? "JSON" : "YAML"}: ${read.problem}`)],
    };
  return checkAgent(read.value, { file, lineOf: read.lineOf });
}

/** The same rules for a definition that came by other ways than a file. */
export function checkAgent(value: unknown, origin: Origin = { file: null, lineOf: null }): ParsedAgent {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const next = "Write an object with at least name, and command or system_prompt.";
    return {
      ok: false,
      faults: [fault("DROVER-AGT-004", origin, [], "an agent is an object of keys and values", next)],
    };
  }
  const hasCommand = "command" in value && value.command !== null && value.command !== undefined;
  const checked = checkShape({ type: hasCommand ? "procedural" : "autonomous", ...value }, shape, origin);
  if (!checked.ok) return checked;
  const faults = [...typeFaults(checked.value, origin), ...schemaFaults(checked.value, origin)];
  return faults.length > 0 ? { ok: false, faults } : { ok: true, agent: checked.value, origin };
}

const shape = {
  schema: agentSchema,
  unknownKey: "DROVER-AGT-003",
  wrongValue: "DROVER-AGT-004",
  manual: "docs/agents.md",
} as const;

function parseMarkdownAgent(file: string, text: string): ParsedAgent {
  const parts = splitMarkdown(text);
  if (!parts.ok)
    return {
      ok: false,
      faults: [
        {
          ...notReadable(file, parts.line, `is not a markdown agent: ${parts.problem}`),
          ...(parts.next && { next: parts.next }),
        },
      ],
    };
  const { fields, title, titleLine, systemPrompt, sections } = parts;
  const origin: Origin = {
    file,
    lineOf: ([key, ...rest]) =>
      typeof fields === "object" && fields !== null && String(key) in fields
        ? parts.lineOf([key!, ...rest])
        : titleLine,
  };
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) return checkAgent(fields, origin);
  const fromBody = {
    ...(title !== null && { name: slugOf(title), title }),
    ...(systemPrompt !== "" && { system_prompt: systemPrompt }),
    ...(sections !== "" && { first_message: sections }),
  };
  const twice = (["title", "system_prompt", "first_message"] as const).filter(
    (key) => key in fromBody && key in fields,
  );
  if (twice.length > 0) {
    const faults = twice.map((key) =>
      fault("DROVER-AGT-004", origin, [key], `${key} stands in the front matter and in the text`, "Keep one of them."),
    );
    return { ok: false, faults };
  }
  return checkAgent({ ...fromBody, ...fields }, origin);
}

function typeFaults(agent: Agent, origin: Origin): DefinitionFault[] {
  if (agent.type === "procedural" && agent.command === null) {
    return [
      fault(
        "DROVER-AGT-004",
        origin,
        ["command"],
        "a procedural agent needs a command",
        "Add command, or make the type autonomous.",
      ),
    ];
  }
  if (agent.type === "autonomous" && agent.command !== null) {
    return [
      fault(
        "DROVER-AGT-004",
        origin,
        ["command"],
        "an autonomous agent has no command",
        "Remove command, or make the type procedural.",
      ),
    ];
  }
  return [];
}

function schemaFaults(agent: Agent, origin: Origin): DefinitionFault[] {
  return (["parameters_schema", "output_schema"] as const).flatMap((key) => {
    const schema = agent[key];
    return schema === undefined ? [] : schemaLimitFaults(schema).map((found) => schemaFault(key, found, origin));
  });
}

export function schemaFault(
  key: "parameters_schema" | "output_schema",
  { path, message }: { path: string; message: string },
  origin: Origin,
): DefinitionFault {
  const steps = path
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  const next = "Mend the schema; JSON Schema 2020-12 and draft-07 are understood.";
  return fault("DROVER-AGT-006", origin, [key, ...steps], `${[key, ...steps].join(".")} ${message}`, next);
}

function fault(
  code: ErrorCode,
  { file, lineOf }: Origin,
  path: string[],
  message: string,
  next: string,
): DefinitionFault {
  return { code, file, line: lineOf?.(path) ?? null, path: path.join("."), message, next };
}

function notReadable(file: string, line: number, message: string): DefinitionFault {
  return {
    code: "DROVER-AGT-002",
    file,
    line,
    path: "",
    message: `the file ${message}`,
    next: "Mend that line; `drover agents check` reads the file again.",
  };
}
