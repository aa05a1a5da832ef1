import { BugError } from "../model/errors.ts";
import type { NewId } from "../model/ids.ts";
import type { Provider, ProviderSession, SessionStore, ToolUse, Turn, TurnOptions } from "../model/provider.ts";
import { compact } from "./compact.ts";
import {
  type Conversation,
  conversationFormat,
  type Generate,
  type Message,
  type Model,
  type Part,
} from "./message.ts";

export type { Conversation, Generate, GenerateResult, Message, Model, Part } from "./message.ts";

/** Creates a provider from a model service. */
export function createProvider(name: string, service: Model, store: SessionStore, newId: NewId): Provider {
  const open = (session_id: string, conversation: Conversation): ProviderSession =>
    openSession(session_id, conversation, service.generate, store);
  return {
    name,
    async createSession(options) {
      const session_id = newId();
      const conversation: Conversation = { format: conversationFormat, options, messages: [] };
      await store.save(session_id, conversation);
      return open(session_id, conversation);
    },
    async resumeSession(session_id, model) {
      const state = await store.load(session_id);
      if (!isConversation(state)) return null;
      return open(session_id, model === undefined ? state : { ...state, options: { ...state.options, model } });
    },
    close: async () => service.close?.(),
  };
}

function openSession(
  session_id: string,
  conversation: Conversation,
  generate: Generate,
  store: SessionStore,
): ProviderSession {
  let current = conversation;
  /** Adds the new messages and their answer to the conversation. If the request fails, adds neither. */
  async function runTurn(newMessages: readonly Message[], options: TurnOptions): Promise<Turn> {
    const request = { ...current, messages: [...current.messages, ...newMessages] };
    const result = await generate(request, options);
    if (!result.ok) return result;
    current = { ...request, messages: [...request.messages, { role: "assistant", parts: result.parts }] };
    await store.save(session_id, current);
    const tool_uses = findPendingUses(current.messages);
    const { usage, stop } = result;
    return {
      ok: true,
      text: joinText(result.parts),
      tool_uses,
      usage,
      stop: stop === "end" && tool_uses.length > 0 ? "tool_use" : stop,
    };
  }
  return {
    session_id,
    model: conversation.options.model,
    get last_message() {
      const last = current.messages.findLast((message) => message.role === "assistant");
      return last ? joinText(last.parts) : null;
    },
    get pending() {
      return findPendingUses(current.messages);
    },
    async sendMessage(text, options) {
      const pending = findPendingUses(current.messages);
      if (pending.length > 0)
        throw new BugError(`a message was sent before the results of ${pending.map(getId).join(", ")}`);
      return runTurn([{ role: "user", text }], options);
    },
    async submitToolResults(results, { message, ...options }) {
      const missing = findPendingUses(current.messages).filter(
        (use) => !results.some((result) => result.tool_use_id === getId(use)),
      );
      if (missing.length > 0) throw new BugError(`no result was submitted for ${missing.map(getId).join(", ")}`);
      const followUp: Message[] = message === undefined ? [] : [{ role: "user", text: message }];
      return runTurn([{ role: "tool", results }, ...followUp], options);
    },
    async compact(options) {
      const { compacted, conversation: shorter } = await compact(current, generate, options);
      if (shorter === null) return compacted;
      current = shorter;
      await store.save(session_id, current);
      return compacted;
    },
  };
}

function findPendingUses(messages: readonly Message[]): ToolUse[] {
  const last = messages.at(-1);
  if (last?.role !== "assistant") return [];
  return last.parts.flatMap((part) => {
    if (part.type !== "tool_use") return [];
    const { type: _type, meta: _meta, ...use } = part;
    return [use];
  });
}

function joinText(parts: readonly Part[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

const getId = ({ tool_use_id }: ToolUse): string => tool_use_id;

export function isConversation(state: unknown): state is Conversation {
  return typeof state === "object" && state !== null && Reflect.get(state, "format") === conversationFormat;
}
