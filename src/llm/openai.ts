import { generateWith } from "./ai-sdk.ts";
import type { ProviderDefinition } from "./definition.ts";

const variable = "OPENAI_API_KEY";

export const openai: ProviderDefinition = {
  variable,
  address_variable: "OPENAI_BASE_URL",
  default_model: "gpt-5",
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
