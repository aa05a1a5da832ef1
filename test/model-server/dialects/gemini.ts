import { type Fields, toFields, toFieldsList, splitIntoPieces, toText } from "../json.ts";
import type { Dialect, Frame, Message, Reply } from "../script.ts";

/** Gemini generateContent. The model and whether to stream are part of the path. */
export const gemini: Dialect = {
  name: "gemini",
  read: (body, path) => {
    const config = toFields(body["generationConfig"]);
    return {
      model: /models\/([^:/]+):/.exec(path)?.[1] ?? "",
      stream: path.includes(":streamGenerateContent"),
      messages: [
        { ...message(toFields(body["systemInstruction"])), role: "system" },
        ...toFieldsList(body["contents"]).map(message),
      ],
      tools: toFieldsList(body["tools"])
        .flatMap((tool) => toFieldsList(tool["functionDeclarations"]))
        .map(({ name }) => ({ name: toText(name), takesText: false })),
      schema: config["responseJsonSchema"] ?? config["responseSchema"],
    };
  },
  whole: (reply) => answer(reply, [...texts(reply.text === "" ? [] : [reply.text]), ...calls(reply)], finish(reply)),
  frames,
  error: (status, type = "INTERNAL", text) => ({ error: { code: status, message: text, status: type } }),
};

function message({ role, parts }: Fields): Message {
  const all = toFieldsList(parts);
  return {
    role: role === "model" ? "assistant" : "user",
    text: all
      .filter(({ thought }) => thought !== true)
      .map(({ text }) => toText(text))
      .filter((text) => text !== "")
      .join("\n"),
    tool_calls: all.flatMap(({ functionCall }) => {
      const { name, args } = toFields(functionCall);
      return name === undefined ? [] : [{ name: toText(name), input: toFields(args) }];
    }),
    tool_results: all.flatMap(({ functionResponse }) => {
      const { name, response } = toFields(functionResponse);
      if (name === undefined) return [];
      const { output, error, content } = toFields(response);
      return [toText(output ?? error ?? content) || JSON.stringify(response)];
    }),
  };
}

const finish = ({ reachedLimit }: Reply): string => (reachedLimit ? "MAX_TOKENS" : "STOP");

const texts = (pieces: readonly string[]) => pieces.map((text) => ({ text }));

const calls = (reply: Reply) => reply.calls.map(({ id, name, input }) => ({ functionCall: { id, name, args: input } }));

const answer = (reply: Reply, parts: readonly unknown[], finishReason?: string) => ({
  candidates: [{ index: 0, content: { role: "model", parts }, ...(finishReason ? { finishReason } : {}) }],
  modelVersion: reply.model,
  usageMetadata: {
    promptTokenCount: reply.usage.input_tokens,
    candidatesTokenCount: reply.usage.output_tokens,
    totalTokenCount: reply.usage.input_tokens + reply.usage.output_tokens,
  },
});

function frames(reply: Reply): Frame[] {
  const parts = [...texts(splitIntoPieces(reply.text)), ...calls(reply)];
  return parts.map((part, index) => ({
    data: answer(reply, [part], index === parts.length - 1 ? finish(reply) : undefined),
  }));
}
