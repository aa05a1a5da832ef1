import { type Fields, toFields, serializeInput, toFieldsList, parseOrNull, splitIntoPieces, toText } from "../json.ts";
import type { Dialect, Frame, Message, Reply } from "../script.ts";

/** OpenAI Chat Completions, also as implemented by other services. */
export const chat: Dialect = {
  name: "chat",
  read: (body) => ({
    model: toText(body["model"]),
    stream: body["stream"] === true,
    messages: toFieldsList(body["messages"]).map(message),
    tools: toFieldsList(body["tools"]).map((tool) => ({
      name: toText(toFields(tool["function"])["name"]),
      takesText: false,
    })),
    schema: toFields(toFields(body["response_format"])["json_schema"])["schema"],
  }),
  whole: (reply) => ({
    ...head(reply, "chat.completion"),
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: reply.text === "" ? null : reply.text,
          ...(reply.calls.length > 0 ? { tool_calls: calls(reply) } : {}),
        },
        finish_reason: finish(reply),
      },
    ],
    usage: usage(reply),
  }),
  frames,
  farewell: "data: [DONE]\n\n",
  error: (_status, type = "server_error", text) => ({ error: { message: text, type, code: type, param: null } }),
};

function message({ role, content, tool_calls }: Fields): Message {
  const text =
    typeof content === "string"
      ? content
      : toFieldsList(content)
          .map((part) => toText(part["text"]))
          .join("\n");
  if (role === "tool") return { role: "user", text: "", tool_calls: [], tool_results: [text] };
  return {
    role: role === "assistant" || role === "user" ? role : "system",
    text,
    tool_calls: toFieldsList(tool_calls).map((call) => {
      const { name, arguments: input } = toFields(call["function"]);
      return { name: toText(name), input: parseOrNull(toText(input)) };
    }),
    tool_results: [],
  };
}

const head = ({ model, text, calls: [call] }: Reply, object: string) => ({
  id: `chatcmpl-${call?.id ?? text.length}`,
  object,
  created: Math.floor(Date.now() / 1000),
  model,
});

const calls = (reply: Reply) =>
  reply.calls.map((call, index) => ({
    index,
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: serializeInput(call) },
  }));

function finish(reply: Reply): string {
  if (reply.reachedLimit) return "length";
  return reply.calls.length > 0 ? "tool_calls" : "stop";
}

const usage = ({ usage: { input_tokens, output_tokens } }: Reply) => ({
  prompt_tokens: input_tokens,
  completion_tokens: output_tokens,
  total_tokens: input_tokens + output_tokens,
});

function frames(reply: Reply): Frame[] {
  const chunk = (delta: unknown, finish_reason: string | null = null) => ({
    data: { ...head(reply, "chat.completion.chunk"), choices: [{ index: 0, delta, finish_reason }] },
  });
  return [
    chunk({ role: "assistant", content: "" }),
    ...splitIntoPieces(reply.text).map((content) => chunk({ content })),
    ...calls(reply).flatMap((call) => [
      chunk({ tool_calls: [{ ...call, function: { name: call.function.name, arguments: "" } }] }),
      ...splitIntoPieces(call.function.arguments).map((part) =>
        chunk({ tool_calls: [{ index: call.index, function: { arguments: part } }] }),
      ),
    ]),
    chunk({}, finish(reply)),
    { data: { ...head(reply, "chat.completion.chunk"), choices: [], usage: usage(reply) } },
  ];
}
