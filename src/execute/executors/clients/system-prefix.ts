import type { Turn } from "./definition.ts";

/**
 * For a client that takes a system prompt only by its command line, which everybody on the machine can read, or in
 * place of its own: it goes before the first prompt. A session that goes on has heard it.
 */
export function withSystemPrefix({ systemPrompt, prompt, session }: Turn): string {
  const system = systemPrompt?.trim() ?? "";
  if (system === "" || session !== null) return prompt;
  return `<instructions>\n${system}\n</instructions>\n\n${prompt}`;
}
