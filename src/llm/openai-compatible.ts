import { RequestError } from "../model/errors.ts";
import { generateWith } from "./ai-sdk.ts";
import type { Model } from "./conversation.ts";
import type { ProviderDefinition } from "./definition.ts";

const variable = "OPENAI_COMPATIBLE_API_KEY";

export const openaiCompatible: ProviderDefinition = {
  // Many compatible services need no key.
  keyVariable: null,
  defaultModel: null,
  async open({ base_url }, { env }) {
    if (base_url === undefined)
      throw new RequestError({
        code: "DROVER-LLM-003",
        field: "base_url",
        message: "The provider openai-compatible needs the address of its service.",
        next: "Set base_url in the profile's config, for example http://127.0.0.1:8000/v1.",
      });
    return openChatModel("openai-compatible", base_url, env[variable]);
  },
};

export async function openChatModel(name: string, baseURL: string, apiKey: string | undefined): Promise<Model> {
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const service = createOpenAICompatible({
    name,
    baseURL,
    includeUsage: true,
    ...(apiKey === undefined ? {} : { apiKey }),
  });
  return { generate: generateWith({ provider: name, variable: null, model: (model) => service.chatModel(model) }) };
}
