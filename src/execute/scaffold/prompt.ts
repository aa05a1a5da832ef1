import type { Invocation } from "../../model/executor.ts";

/** Joins the agent's first message, the prompt and the parameters. A continued session already has the first message. */
export function buildDefaultPrompt({ agent, mode, prompt, parameters }: Invocation): string {
  const first = mode === "start" ? agent.first_message : undefined;
  return [first, prompt, formatParameters(parameters)]
    .map((part) => part?.trim() ?? "")
    .filter((part) => part !== "")
    .join("\n\n");
}

function formatParameters(parameters: Record<string, unknown>): string {
  return Object.entries(parameters)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) =>
      typeof value === "string" ? formatString(name, value) : `${name}: ${JSON.stringify(value)}`,
    )
    .join("\n");
}

function formatString(name: string, value: string): string {
  return value.includes("\n") ? `${name}:\n${value}` : `${name}: ${value}`;
}
