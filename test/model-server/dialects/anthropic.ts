import { type Fields, toFields, serializeInput, toFieldsList, splitIntoPieces, toText } from "../json.ts";
import type { Dialect, Frame, Message, Reply } from "../script.ts";

/** Anthropic Messages. */
export const anthropic: Dialect = {
  name: "anthropic",
  read: (body) => ({
    model: toText(body["model"]),
    stream: body["stream"] === true,
    messages: [
      { role: "system", text: plain(body["system"]), tool_calls: [], tool_results: [] },
      ...toFieldsList(body["messages"]).map(message),
    ],
    tools: toFieldsList(body["tools"]).map(({ name }) => ({ name: toText(name), takesText: false })),
    schema: toFields(toFields(body["output_config"])["format"])["schema"],
  }),
  whole: (reply) => ({
    ...head(reply),
    content: blocks(reply).map(shown),
    stop_reason: stop(reply),
    usage: reply.usage,
  }),
  frames,
  error: (_status, type = "api_error", text) => ({ type: "error", error: { type, message: text } }),
};

function message({ role, content }: Fields): Message {
  const parts = toFieldsList(content);
  return {
    role: role === "assistant" ? "assistant" : role === "system" ? "system" : "user",
    text: plain(content),
    tool_calls: parts
      .filter(({ type }) => type === "tool_use")
      .map(({ name, input }) => ({ name: toText(name), input: toFields(input) })),
    tool_results: parts.filter(({ type }) => type === "tool_result").map((part) => plain(part["content"])),
  };
}

function plain(content: unknown): string {
  if (typeof content === "string") return content;
  return toFieldsList(content)
    .filter(({ type }) => type === "text")
    .map(({ text }) => toText(text))
    .join("\n");
}

function head({ model, text, calls }: Reply) {
  const id = `msg_${calls[0]?.id ?? text.length}`;
  return { id, type: "message", role: "assistant", model, stop_sequence: null };
}

function stop({ calls, reachedLimit }: Reply): string {
  if (reachedLimit) return "max_tokens";
  return calls.length > 0 ? "tool_use" : "end_turn";
}

function blocks({ text, calls }: Reply) {
  return [
    ...(text === "" ? [] : [{ type: "text" as const, text }]),
    ...calls.map((call) => ({ type: "tool_use" as const, id: call.id, name: call.name, input: call.input, call })),
  ];
}

/** A block without the fields that only the stream needs. */
function shown(block: ReturnType<typeof blocks>[number]) {
  if (block.type === "text") return block;
  const { call: _, ...rest } = block;
  return rest;
}

function frames(reply: Reply): Frame[] {
  const { input_tokens, output_tokens } = reply.usage;
  const start = { ...head(reply), content: [], stop_reason: null, usage: { input_tokens, output_tokens: 1 } };
  return [
    { type: "message_start", message: start },
    { type: "ping" },
    ...blocks(reply).flatMap((block, index) => {
      const [empty, deltas] =
        block.type === "text"
          ? [{ type: "text", text: "" }, splitIntoPieces(block.text).map((text) => ({ type: "text_delta", text }))]
          : [
              { ...shown(block), input: {} },
              splitIntoPieces(serializeInput(block.call)).map((partial_json) => ({
                type: "input_json_delta",
                partial_json,
              })),
            ];
      return [
        { type: "content_block_start", index, content_block: empty },
        ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
        { type: "content_block_stop", index },
      ];
    }),
    { type: "message_delta", delta: { stop_reason: stop(reply), stop_sequence: null }, usage: { output_tokens } },
    { type: "message_stop" },
  ].map((data) => ({ event: data.type, data }));
}
