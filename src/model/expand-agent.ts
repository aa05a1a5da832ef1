import type { Agent } from "./agent.ts";

export interface VariableFault {
  variable: string;
  /** The field it stands in, as `mcp_servers.github.env`. */
  path: string;
  why: "not_allowed" | "not_set";
}

export interface Variables {
  /** Names the runner's operator allowed. */
  allowed: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
}

/**
 * `${NAME}` becomes the runner's value, or where that is not set the text of `${NAME:-text}`; `$${NAME}` stays as
 * `${NAME}`. `command` is left as it is:
 * a value with a blank in it must not become two words, so its words are expanded once it has been split.
 */
export function expandAgent(agent: Agent, variables: Variables): { agent: Agent; faults: VariableFault[] } {
  const faults: VariableFault[] = [];
  const expanded: Record<string, unknown> = { ...agent };
  for (const field of expandedFields) {
    if (field === "on_finish" && typeof agent[field] !== "string") continue; // a chain is the coordinator's
    if (agent[field] !== undefined) expanded[field] = expandValue(agent[field], field, variables, faults);
  }
  // only strings were put in the place of strings
  return { agent: expanded as Agent, faults };
}

/** The names of all variables that an agent names where they are expanded. */
export function variablesIn(agent: Agent): string[] {
  const none = { allowed: [], env: {} };
  const { faults } = expandText(agent.command ?? "", "command", none);
  return [...new Set([...expandAgent(agent, none).faults, ...faults].map(({ variable }) => variable))];
}

/** Schemas, demands and names are what the coordinator checks and matches: they mean the same everywhere. */
const expandedFields = ["system_prompt", "first_message", "provider", "model", "mcp_servers", "on_finish"] as const;

function expandValue(value: unknown, path: string, variables: Variables, faults: VariableFault[]): unknown {
  if (typeof value === "string") {
    const { text, faults: found } = expandText(value, path, variables);
    faults.push(...found);
    return text;
  }
  if (Array.isArray(value)) return value.map((item, at) => expandValue(item, `${path}.${at}`, variables, faults));
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
      // whether a name may be used does not depend on its default
      const value = allowed.includes(variable) ? (env[variable] ?? fallback) : undefined;
      if (value !== undefined) return value;
      faults.push({ variable, path, why: allowed.includes(variable) ? "not_set" : "not_allowed" });
      return whole;
    },
  );
  return { text: expanded, faults };
}

export function describeVariableFault({ variable, path, why }: VariableFault): string {
  return why === "not_set"
    ? `\${${variable}} in ${path} is allowed, but not set on this runner`
    : `\${${variable}} in ${path} is not allowed on this runner: its profile has to list ${variable} in allow_env`;
}
