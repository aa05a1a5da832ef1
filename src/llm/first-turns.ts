import { isConversation } from "./conversation.ts";
import type { Conversation } from "./message.ts";

export type FirstTurns =
  | { ok: true; conversation: Conversation }
  /**
   * `turns` is the number of turns in the conversation; null if its start was summarized, so that the number is
   * unknown.
   */
  | { ok: false; turns: number | null };

/** Returns the first `turns` messages of the user, each with everything up to its answer. */
export function takeFirstTurns(state: unknown, turns: number): FirstTurns {
  if (!isConversation(state)) return { ok: false, turns: 0 };
  if (state.compacted !== undefined) return { ok: false, turns: null };
  const turnStarts = state.messages.flatMap(({ role }, index) => (role === "user" ? [index] : []));
  if (turnStarts.length < turns) return { ok: false, turns: turnStarts.length };
  return { ok: true, conversation: { ...state, messages: state.messages.slice(0, turnStarts[turns]) } };
}
