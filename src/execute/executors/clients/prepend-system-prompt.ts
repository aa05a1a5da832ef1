import type { Turn } from "./definition.ts";

/**
 * Puts the system prompt before the first prompt, for clients that take one only on the command line, where every user
 * can read it, or only as a replacement of their own. A continued session already has it.
 */
export function prependSystemPrompt({ systemPrompt, prompt, session }: Turn): string {
  const system = systemPrompt?.trim() ?? "";
  if (system === "" || session !== null) return prompt;
  return `<instructions>\n${system}\n</instructions>\n\n${prompt}`;
}
