import type { Turn } from "./definition.ts";

/**
 * Puts the system prompt before the first prompt. Use this for clients that accept a system prompt only on the command
 * line, where every user can read it, or only in place of their own. A continued session already has it.
 */
export function prependSystemPrompt({ systemPrompt, prompt, session }: Turn): string {
  const system = systemPrompt?.trim() ?? "";
  if (system === "" || session !== null) return prompt;
  return `<instructions>\n${system}\n</instructions>\n\n${prompt}`;
}
