import { generateWith } from "./ai-sdk.ts";
import type { ProviderDefinition } from "./definition.ts";

const variable = "OPENAI_API_KEY";

export const openai: ProviderDefinition = {
  keyVariable: variable,
  baseUrlVariable: "OPENAI_BASE_URL",
  defaultModel: "gpt-5",
  async open({ base_url }, { env }) {
    const { createOpenAI } = await import("@ai-sdk/openai");
    const service = createOpenAI({
      apiKey: env[variable] ?? "",
      ...(base_url === undefined ? {} : { baseURL: base_url }),
    });
    return {
      generate: generateWith({
        provider: "openai",
        variable,
        model: (name) => service.responses(name),
        // Drover keeps the conversation, so the service must not store it.
        providerOptions: { openai: { store: false } },
      }),
    };
  },
};
