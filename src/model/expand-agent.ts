import type { Agent } from "./agent.ts";
import type { Environment } from "./environment.ts";

export interface VariableFault {
  variable: string;
  /** The field that contains it, such as `mcp_servers.github.env`. */
  path: string;
  reason: "not_allowed" | "not_set";
}

export interface Variables {
  /** Names that the runner's operator has allowed. */
  allowed: readonly string[];
  env: Environment;
}

/**
 * Replaces `${NAME}` with the runner's value, or with `text` in `${NAME:-text}` if the variable is not set. `$${NAME}`
 * becomes a literal `${NAME}`. `command` is not expanded here but after splitting it into words, so that a value with a
 * space stays one word.
 */
export function expandAgent(agent: Agent, variables: Variables): { agent: Agent; faults: VariableFault[] } {
  const faults: VariableFault[] = [];
  const expanded: Record<string, unknown> = { ...agent };
  for (const field of expandedFields) {
    if (field === "on_finish" && typeof agent[field] !== "string") continue; // The coordinator handles chains.
    if (agent[field] !== undefined) expanded[field] = expandValue(agent[field], field, variables, faults);
  }
  // Only strings were replaced, and only with strings.
  return { agent: expanded as Agent, faults };
}

/** The names of all variables that an agent uses in expanded fields. */
export function listVariables(agent: Agent): string[] {
  const none = { allowed: [], env: {} };
  const { faults } = expandText(agent.command ?? "", "command", none);
  return [...new Set([...expandAgent(agent, none).faults, ...faults].map(({ variable }) => variable))];
}

/** Not schemas, demands and names: the coordinator checks and matches these, so they must be the same on every runner. */
const expandedFields = ["system_prompt", "first_message", "provider", "model", "mcp_servers", "on_finish"] as const;

function expandValue(value: unknown, path: string, variables: Variables, faults: VariableFault[]): unknown {
  if (typeof value === "string") {
    const { text, faults: textFaults } = expandText(value, path, variables);
    faults.push(...textFaults);
    return text;
  }
  if (Array.isArray(value)) return value.map((item, index) => expandValue(item, `${path}.${index}`, variables, faults));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, expandValue(item, `${path}.${key}`, variables, faults)]),
  );
}

export function expandText(
  text: string,
  path: string,
  { allowed, env }: Variables,
): { text: string; faults: VariableFault[] } {
  const faults: VariableFault[] = [];
  const expanded = text.replaceAll(
    /(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g,
    (whole, escape: string, variable: string, fallback: string | undefined) => {
      if (escape !== "") return whole.slice(1);
      // A default does not make a name allowed.
      const value = allowed.includes(variable) ? (env[variable] ?? fallback) : undefined;
      if (value !== undefined) return value;
      faults.push({ variable, path, reason: allowed.includes(variable) ? "not_set" : "not_allowed" });
      return whole;
    },
  );
  return { text: expanded, faults };
}

export function describeVariableFault({ variable, path, reason }: VariableFault): string {
  return reason === "not_set"
    ? `\${${variable}} in ${path} is allowed, but not set on this runner`
    : `\${${variable}} in ${path} is not allowed on this runner: its profile has to list ${variable} in allow_env`;
}
