import type { ModelRequest, Message, Script, Turn } from "./script.ts";

export type Chosen =
  | { kind: "turn"; turn: Turn }
  /** A client's internal call, such as for a title or summary. It is answered without using a turn. */
  | { kind: "side" }
  | { kind: "unknown"; text: string };

/** `broken` counts the failures already served for this conversation. */
export function choose(script: Script, request: ModelRequest, broken: (turn: Turn) => number): Chosen {
  if (request.schema !== undefined) return { kind: "side" };
  if (typeof script === "function") return { kind: "turn", turn: script(request) };
  const lastUser = request.messages.findLastIndex(
    (message) => message.role === "user" && stripClientText(message.text) !== "",
  );
  const text = lastUser < 0 ? "" : stripClientText(request.messages[lastUser]!.text);
  const rule = script.find(({ when }) => (typeof when === "string" ? text.endsWith(when) : when.test(text)));
  if (!rule) return request.tools.length === 0 ? { kind: "side" } : { kind: "unknown", text };
  let index = countSteps(request.messages.slice(lastUser + 1));
  for (let turn = rule.turns[index]; turn?.times !== undefined && broken(turn) >= turn.times; turn = rule.turns[index])
    index++;
  index = Math.min(index, rule.turns.length - 1);
  return { kind: "turn", turn: rule.turns[index]! };
}

/** Returns the text of the user or a tool, without what the client adds around it. */
export function stripClientText(text: string): string {
  return text.replaceAll(/<(system-reminder|environment_context|session_context)>[^]*?<\/\1>/g, "").trim();
}

/** Results of parallel calls arrive in one message or in several. */
function countSteps(messages: readonly Message[]): number {
  return messages.filter(
    (message, index) => message.tool_results.length > 0 && !((messages[index - 1]?.tool_results.length ?? 0) > 0),
  ).length;
}
