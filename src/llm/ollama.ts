import { RequestError } from "../model/errors.ts";
import { openChatModel } from "./openai-compatible.ts";
import type { ProviderDefinition } from "./definition.ts";
import type { Environment } from "../model/environment.ts";

/** A running local service answers within this time. */
const probeTimeoutMs = 1000;

export const ollama: ProviderDefinition = {
  keyVariable: null,
  defaultModel: "llama3.2",
  async isReady({ env }) {
    try {
      const signal = AbortSignal.timeout(probeTimeoutMs);
      return (await fetch(`${readAddress(env)}/api/version`, { signal })).ok;
    } catch {
      // No service is listening there.
      return false;
    }
  },
  open: async ({ base_url }, { env }) => openChatModel("ollama", base_url ?? `${readAddress(env)}/v1`, undefined),
};

/** Accepts `OLLAMA_HOST` without a scheme or a port, as Ollama's own tools do. */
function readAddress(env: Environment): string {
  const host = env["OLLAMA_HOST"] || "127.0.0.1";
  const hasScheme = /^https?:\/\//.test(host);
  const text = hasScheme ? host : `http://${host}`;
  if (!URL.canParse(text))
    throw new RequestError({
      code: "DROVER-LLM-003",
      field: "OLLAMA_HOST",
      message: `OLLAMA_HOST is ${JSON.stringify(host)}, which is not a valid address.`,
      next: "Set it to a host and port such as 127.0.0.1:11434, or to a URL.",
    });
  const url = new URL(text);
  if (url.port === "" && !hasScheme) url.port = "11434";
  return url.href.replace(/\/$/, "");
}
