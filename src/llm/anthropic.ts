import { generateWith } from "./ai-sdk.ts";
import type { ProviderDefinition } from "./definition.ts";

const variable = "ANTHROPIC_API_KEY";

export const anthropic: ProviderDefinition = {
  variable,
  address_variable: "ANTHROPIC_BASE_URL",
  default_model: "claude-sonnet-4-5",
  async open({ base_url }, { env }) {
    const { createAnthropic } = await import("@ai-sdk/anthropic");
    const service = createAnthropic({
      apiKey: env[variable] ?? "",
      ...(base_url === undefined ? {} : { baseURL: withVersion(base_url) }),
    });
    return { generate: generateWith({ provider: "anthropic", variable, model: (name) => service(name) }) };
  },
};

/** Adds the version if it is missing: ANTHROPIC_BASE_URL has none, because other clients expect the address without it. */
function withVersion(url: string): string {
  return /\/v\d+\/?$/.test(url) ? url : `${url.replace(/\/$/, "")}/v1`;
}
