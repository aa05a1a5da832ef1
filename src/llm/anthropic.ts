import { generateWith } from "./ai-sdk.ts";
import type { ProviderDefinition } from "./definition.ts";

const variable = "ANTHROPIC_API_KEY";

export const anthropic: ProviderDefinition = {
  keyVariable: variable,
  baseUrlVariable: "ANTHROPIC_BASE_URL",
  defaultModel: "claude-sonnet-4-5",
  async open({ base_url }, { env }) {
    const { createAnthropic } = await import("@ai-sdk/anthropic");
    const service = createAnthropic({
      apiKey: env[variable] ?? "",
      ...(base_url === undefined ? {} : { baseURL: addVersion(base_url) }),
    });
    return { generate: generateWith({ provider: "anthropic", variable, model: (name) => service(name) }) };
  },
};

/** Adds the version if it is missing: ANTHROPIC_BASE_URL has none, because other clients expect the address without it. */
function addVersion(url: string): string {
  return /\/v\d+\/?$/.test(url) ? url : `${url.replace(/\/$/, "")}/v1`;
}
