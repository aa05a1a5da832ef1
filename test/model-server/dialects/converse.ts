import { crc32 } from "node:zlib";
import { type Fields, toFields, serializeInput, toFieldsList, splitIntoPieces, toText } from "../json.ts";
import type { Dialect, Frame, Message, Reply } from "../script.ts";

/** Amazon Bedrock Converse, streamed. The model is part of the path. */
export const converse: Dialect = {
  name: "converse",
  read: (body, path) => ({
    model: decodeURIComponent(/\/model\/([^/]+)\//.exec(path)?.[1] ?? ""),
    stream: true,
    messages: [
      { role: "system", text: plain(body["system"]), tool_calls: [], tool_results: [] },
      ...toFieldsList(body["messages"]).map(message),
    ],
    tools: toFieldsList(toFields(body["toolConfig"])["tools"]).map(({ toolSpec }) => ({
      name: toText(toFields(toolSpec)["name"]),
      takesText: false,
    })),
    schema: undefined,
  }),
  whole: () => ({ message: "Only streamed answers are scripted." }),
  frames,
  stream: { type: "application/vnd.amazon.eventstream", encode },
  error: (_status, _type, text) => ({ message: text }),
  streamError: (_type, text) => ({ event: "throttlingException", data: { message: text } }),
};

function message({ role, content }: Fields): Message {
  const parts = toFieldsList(content);
  return {
    role: role === "assistant" ? "assistant" : "user",
    text: plain(content),
    tool_calls: parts.flatMap(({ toolUse }) => {
      const { name, input } = toFields(toolUse);
      return name === undefined ? [] : [{ name: toText(name), input: toFields(input) }];
    }),
    tool_results: parts.flatMap(({ toolResult }) =>
      toolResult === undefined ? [] : [plain(toFields(toolResult)["content"])],
    ),
  };
}

const plain = (content: unknown): string =>
  toFieldsList(content)
    .map(({ text }) => toText(text))
    .filter((text) => text !== "")
    .join("\n");

function frames({ text, calls, usage, reachedLimit }: Reply): Frame[] {
  const { input_tokens: inputTokens, output_tokens: outputTokens } = usage;
  const end = calls.length > 0 ? "tool_use" : "end_turn";
  const blocks = [
    ...(text === "" ? [] : [{ start: {}, deltas: splitIntoPieces(text).map((piece): unknown => ({ text: piece })) }]),
    ...calls.map((call) => ({
      start: { toolUse: { toolUseId: call.id, name: call.name } },
      deltas: splitIntoPieces(serializeInput(call)).map((input): unknown => ({ toolUse: { input } })),
    })),
  ];
  return [
    { event: "messageStart", data: { role: "assistant" } },
    ...blocks.flatMap(({ start, deltas }, contentBlockIndex) => [
      { event: "contentBlockStart", data: { contentBlockIndex, start } },
      ...deltas.map((delta) => ({ event: "contentBlockDelta", data: { contentBlockIndex, delta } })),
      { event: "contentBlockStop", data: { contentBlockIndex } },
    ]),
    { event: "messageStop", data: { stopReason: reachedLimit ? "max_tokens" : end } },
    { event: "metadata", data: { usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens } } },
  ];
}

/** One message of AWS's binary event stream: lengths, headers and payload, each with its checksum. */
function encode(event: string, payload: string): Buffer {
  const isException = event.endsWith("Exception");
  const headers = Buffer.concat([
    header(":message-type", isException ? "exception" : "event"),
    header(isException ? ":exception-type" : ":event-type", event),
    header(":content-type", "application/json"),
  ]);
  const body = Buffer.from(payload);
  const prelude = Buffer.concat([uint32(16 + headers.length + body.length), uint32(headers.length)]);
  const checked = Buffer.concat([prelude, uint32(crc32(prelude)), headers, body]);
  return Buffer.concat([checked, uint32(crc32(checked))]);
}

/** Type 7 marks a string value. */
const header = (name: string, value: string): Buffer =>
  Buffer.concat([
    Buffer.from([name.length]),
    Buffer.from(name),
    Buffer.from([7, value.length >> 8, value.length & 255]),
    Buffer.from(value),
  ]);

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
