import type { ClientDefinition } from "./definition.ts";

/** Each client's program. Kept apart from the rest, because a runner loads it at every start. */
export const programs = {
  claude: {
    name: "claude",
    program: "claude",
    binVariable: "CLAUDE_BIN",
    install: "Install it with `npm install -g @anthropic-ai/claude-code`",
  },
  codex: {
    name: "codex",
    program: "codex",
    binVariable: "CODEX_BIN",
    install: "Install it with `npm install -g @openai/codex`",
  },
  gemini: {
    name: "gemini",
    program: "gemini",
    binVariable: "GEMINI_BIN",
    install: "Install it with `npm install -g @google/gemini-cli`",
  },
} satisfies Record<string, Pick<ClientDefinition, "name" | "program" | "binVariable" | "install">>;

export type ClientName = keyof typeof programs;

export function isClientName(name: unknown): name is ClientName {
  return typeof name === "string" && Object.hasOwn(programs, name);
}
