import { type Fields, toFields, serializeInput, toFieldsList, parseOrNull, splitIntoPieces, toText } from "../json.ts";
import type { Dialect, Frame, Message, OfferedTool, Reply } from "../script.ts";

/** OpenAI Responses. */
export const responses: Dialect = {
  name: "responses",
  read: (body) => ({
    model: toText(body["model"]),
    stream: body["stream"] === true,
    messages: [
      { role: "system", text: toText(body["instructions"]), tool_calls: [], tool_results: [] },
      ...(typeof body["input"] === "string"
        ? [createMessage("user", body["input"])]
        : toFieldsList(body["input"]).flatMap(message)),
    ],
    tools: toFieldsList(body["tools"]).flatMap(parseTools),
    schema: toFields(toFields(body["text"])["format"])["schema"],
  }),
  whole,
  frames,
  error: (_status, type = "server_error", text) => ({ error: { message: text, type, code: type, param: null } }),
  streamError: (code, text) => ({
    event: "error",
    data: { type: "error", sequence_number: 99, error: { type: code, code, message: text, param: null } },
  }),
};

const createMessage = (role: Message["role"], text: string): Message => ({
  role,
  text,
  tool_calls: [],
  tool_results: [],
});

function parseTools(tool: Fields): OfferedTool[] {
  // A namespace contains tools.
  if (tool["type"] === "namespace") return toFieldsList(tool["tools"]).flatMap(parseTools);
  const name = toText(tool["name"]);
  return name === "" ? [] : [{ name, takesText: tool["type"] === "custom" }];
}

function message(item: Fields): Message[] {
  switch (item["type"]) {
    case "function_call":
    case "custom_tool_call": {
      const input = item["type"] === "function_call" ? parseOrNull(toText(item["arguments"])) : { text: item["input"] };
      return [{ ...createMessage("assistant", ""), tool_calls: [{ name: toText(item["name"]), input }] }];
    }
    case "function_call_output":
    case "custom_tool_call_output":
      return [{ ...createMessage("user", ""), tool_results: [plain(item["output"])] }];
    case "message":
    case undefined: {
      const role = item["role"];
      return [createMessage(role === "assistant" || role === "user" ? role : "system", plain(item["content"]))];
    }
    default:
      return [];
  }
}

function plain(content: unknown): string {
  if (typeof content === "string") return content;
  const inner = toFields(content)["content"];
  if (inner !== undefined) return plain(inner);
  return toFieldsList(content)
    .map(({ text }) => toText(text))
    .join("\n");
}

const head = ({ model, text, calls }: Reply) => ({
  id: `resp_${calls[0]?.id ?? text.length}`,
  object: "response",
  created_at: Math.floor(Date.now() / 1000),
  model,
});

const usage = ({ usage: { input_tokens, output_tokens } }: Reply) => ({
  input_tokens,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: input_tokens + output_tokens,
});

function items({ text, calls }: Reply) {
  const content = [{ type: "output_text", text, annotations: [] }];
  return [
    ...(text === ""
      ? []
      : [{ type: "message", id: `msg_${text.length}`, role: "assistant", status: "completed", content }]),
    ...calls.map((call) => {
      const { id, name, input, takesText } = call;
      return takesText
        ? { type: "custom_tool_call", id: `ctc_${id}`, call_id: id, name, input: toText(input["text"]) }
        : {
            type: "function_call",
            id: `fc_${id}`,
            call_id: id,
            name,
            status: "completed",
            arguments: serializeInput(call),
          };
    }),
  ];
}

const status = ({ reachedLimit }: Reply): string => (reachedLimit ? "incomplete" : "completed");

function whole(reply: Reply) {
  const details = reply.reachedLimit ? { incomplete_details: { reason: "max_output_tokens" } } : {};
  return { ...head(reply), status: status(reply), ...details, output: items(reply), usage: usage(reply) };
}

function frames(reply: Reply): Frame[] {
  const all = items(reply).flatMap((item, output_index): Fields[] => [
    { type: "response.output_item.added", output_index, item: { ...item, ...startOf(item) } },
    ...deltasOf(item, reply).map((delta) => ({ ...delta, item_id: item.id, output_index })),
    { type: "response.output_item.done", output_index, item },
  ]);
  return [
    { type: "response.created", response: { ...head(reply), status: "in_progress", output: [] } },
    ...all,
    { type: `response.${status(reply)}`, response: whole(reply) },
  ].map((data, sequence_number) => ({ event: toText(data.type), data: { ...data, sequence_number } }));
}

type Item = ReturnType<typeof items>[number];

/** The fields of an item before its content is streamed. */
function startOf({ type }: Item): Fields {
  if (type === "message") return { status: "in_progress", content: [] };
  return type === "function_call" ? { status: "in_progress", arguments: "" } : {};
}

/** The content of an item in pieces. The input of a custom tool arrives whole. */
function deltasOf(item: Item, { text }: Reply): Fields[] {
  if (item.type === "message")
    return splitIntoPieces(text).map((delta) => ({ type: "response.output_text.delta", content_index: 0, delta }));
  if (!("arguments" in item)) return [];
  return splitIntoPieces(item.arguments).map((delta) => ({ type: "response.function_call_arguments.delta", delta }));
}
