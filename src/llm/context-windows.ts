/** The window of a model in tokens, including its answer, by the start of its name. The first match counts. */
const windows: readonly (readonly [prefix: string, tokens: number])[] = [
  ["claude-", 200_000],
  ["gpt-5", 400_000],
  ["gpt-4.1", 1_047_576],
  ["gpt-4o", 128_000],
  ["o3", 200_000],
  ["o4", 200_000],
  ["gemini-", 1_048_576],
];

/**
 * Returns null if the window is unknown. That includes self-hosted models, whose window is a setting of the server.
 * Names may start with a vendor and a region: `us.anthropic.claude-sonnet-4-5`, `openai/gpt-5`.
 */
export function contextWindowOf(model: string): number | null {
  const name = model.replace(/^.*[/]|^(?:[a-z]{2,6}\.)?[a-z]+\.(?=[a-z]+-)/, "");
  return windows.find(([prefix]) => name.startsWith(prefix))?.[1] ?? null;
}
