/** Context windows in tokens, including the answer, by the start of the model's name. The first match counts. */
const contextWindows: readonly (readonly [prefix: string, tokens: number])[] = [
  ["claude-", 200_000],
  ["gpt-5", 400_000],
  ["gpt-4.1", 1_047_576],
  ["gpt-4o", 128_000],
  ["o3", 200_000],
  ["o4", 200_000],
  ["gemini-", 1_048_576],
];

/**
 * Returns null if the context window is unknown, as for self-hosted models, where it is a setting of the server.
 * Names may start with a region and a service: `us.anthropic.claude-sonnet-4-5`, `openai/gpt-5`.
 */
export function findContextWindow(model: string): number | null {
  const name = model.replace(/^.*[/]|^(?:[a-z]{2,6}\.)?[a-z]+\.(?=[a-z]+-)/, "");
  return contextWindows.find(([prefix]) => name.startsWith(prefix))?.[1] ?? null;
}
