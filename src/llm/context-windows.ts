/** Tokens that a model takes, its answer included, by how its name begins. The first that fits counts. */
const windows: readonly (readonly [beginning: string, tokens: number])[] = [
  ["claude-", 200_000],
  ["gpt-5", 400_000],
  ["gpt-4.1", 1_047_576],
  ["gpt-4o", 128_000],
  ["o3", 200_000],
  ["o4", 200_000],
  ["gemini-", 1_048_576],
];

/**
 * null: not known. That holds for models that people serve themselves too, whose window is a setting of the server.
 * Names may carry a vendor and a region before the model: `us.anthropic.claude-sonnet-4-5`, `openai/gpt-5`.
 */
export function contextWindowOf(model: string): number | null {
  const name = model.replace(/^.*[/]|^(?:[a-z]{2,6}\.)?[a-z]+\.(?=[a-z]+-)/, "");
  return windows.find(([beginning]) => name.startsWith(beginning))?.[1] ?? null;
}
