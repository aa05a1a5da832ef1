import { generateWith } from "./ai-sdk.ts";
import type { ProviderDefinition } from "./definition.ts";

const variable = "GEMINI_API_KEY";

export const google: ProviderDefinition = {
  keyVariable: variable,
  defaultModel: "gemini-2.5-flash",
  async open({ base_url }, { env }) {
    const { createGoogleGenerativeAI } = await import("@ai-sdk/google");
    const service = createGoogleGenerativeAI({
      apiKey: env[variable] ?? "",
      ...(base_url === undefined ? {} : { baseURL: base_url }),
    });
    return { generate: generateWith({ provider: "google", variable, model: (name) => service(name) }) };
  },
};
