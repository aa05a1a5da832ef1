import { RequestError } from "../model/errors.ts";
import { openChat } from "./openai-compatible.ts";
import type { Env, ProviderDefinition } from "./definition.ts";

/** A local service that is up answers at once. */
const answersWithinMs = 1000;

export const ollama: ProviderDefinition = {
  variable: null,
  default_model: "llama3.2",
  async isReady({ env }) {
    try {
      const signal = AbortSignal.timeout(answersWithinMs);
      return (await fetch(`${addressOf(env)}/api/version`, { signal })).ok;
    } catch {
      // nothing listens there, which is the answer
      return false;
    }
  },
  open: async ({ base_url }, { env }) => openChat("ollama", base_url ?? `${addressOf(env)}/v1`, undefined),
};

/** `OLLAMA_HOST` is often given as Ollama's own tools take it: without a scheme or a port. */
function addressOf(env: Env): string {
  const host = env["OLLAMA_HOST"] || "127.0.0.1";
  const hasScheme = /^https?:\/\//.test(host);
  const text = hasScheme ? host : `http://${host}`;
  if (!URL.canParse(text))
    throw new RequestError({
      code: "DROVER-LLM-003",
      field: "OLLAMA_HOST",
      message: `OLLAMA_HOST is ${JSON.stringify(host)}, which is not an address.`,
      next: "Set it to a host and port such as 127.0.0.1:11434, or to a URL.",
    });
  const url = new URL(text);
  if (url.port === "" && !hasScheme) url.port = "11434";
  return url.href.replace(/\/$/, "");
}
