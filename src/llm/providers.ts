import { RequestError } from "../model/errors.ts";
import type { NewId } from "../model/ids.ts";
import type { Provider, SessionStore } from "../model/provider.ts";
import { suggest } from "../model/suggest.ts";
import { createProvider } from "./conversation.ts";
import type { ProviderDefinition, ProviderHost, ProviderSettings } from "./definition.ts";

const loaders: Record<string, () => Promise<ProviderDefinition>> = {
  "claude-code": async () => (await import("./claude-code/claude-code.ts")).claudeCode,
  anthropic: async () => (await import("./anthropic.ts")).anthropic,
  openai: async () => (await import("./openai.ts")).openai,
  google: async () => (await import("./google.ts")).google,
  ollama: async () => (await import("./ollama.ts")).ollama,
  "openai-compatible": async () => (await import("./openai-compatible.ts")).openaiCompatible,
  bedrock: async () => (await import("./bedrock.ts")).bedrock,
  scripted: async () => (await import("./scripted.ts")).scripted,
};

/** If no provider is named, Drover uses the first provider in this list that is ready. */
const defaultOrder = ["claude-code", "anthropic", "openai", "google", "ollama"] as const;

export const providerNames: readonly string[] = Object.keys(loaders);

/** The sources that can name a provider, highest priority first. */
export interface NamedProviders {
  /** `--provider` on the command line. */
  option?: string | undefined;
  agent?: string | undefined;
  /** `provider` in the profile's config. */
  profile?: string | undefined;
  /** `provider` in drover.yaml. */
  config?: string | undefined;
}

/** Returns the named provider, or the first that works here without further setup. */
export async function chooseProvider(
  { option, agent, profile, config }: NamedProviders,
  host: Pick<ProviderHost, "env" | "directory">,
): Promise<string> {
  const requested = option ?? agent ?? profile ?? config;
  if (requested !== undefined) {
    await findProvider(requested);
    return requested;
  }
  for (const name of defaultOrder) if (await isReady(await findProvider(name), host)) return name;
  throw new RequestError({
    code: "DROVER-LLM-005",
    field: "provider",
    message: "No model provider is configured, and none is ready to use on this machine.",
    next:
      "Set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY in the runner's environment, or start Ollama. " +
      "To try Drover without a model, use the provider scripted.",
  });
}

async function isReady(definition: ProviderDefinition, host: Pick<ProviderHost, "env" | "directory">) {
  const { keyVariable: variable } = definition;
  return definition.isReady ? definition.isReady(host) : variable !== null && Boolean(host.env[variable]);
}

export async function findProvider(name: string): Promise<ProviderDefinition> {
  if (Object.hasOwn(loaders, name)) return loaders[name]!();
  const suggestion = suggest(name, providerNames);
  throw new RequestError({
    code: "DROVER-LLM-001",
    field: "provider",
    message: `Unknown provider: ${name}.${suggestion ? ` Did you mean ${suggestion}?` : ""}`,
    next: `Use one of ${providerNames.join(", ")}.`,
  });
}

export interface OpenOptions extends ProviderHost {
  settings: ProviderSettings;
  store: SessionStore;
  newId: NewId;
}

export async function openProvider(name: string, options: OpenOptions): Promise<Provider> {
  const definition = await findProvider(name);
  const { keyVariable: variable } = definition;
  if (variable !== null && !options.env[variable])
    throw new RequestError({
      code: "DROVER-LLM-002",
      field: variable,
      message: `The provider ${name} needs a key, but ${variable} is not set.`,
      next: `Set ${variable} in the environment of the runner, or of the command that runs the agent; or choose another provider.`,
    });
  const settings = { ...options.settings, ...readBaseUrl(definition, options) };
  return createProvider(name, await definition.open(settings, options), options.store, options.newId);
}

/** The settings take precedence over the variable. */
function readBaseUrl({ baseUrlVariable }: ProviderDefinition, { settings, env }: OpenOptions): { base_url?: string } {
  const field = settings.base_url === undefined && baseUrlVariable !== undefined ? baseUrlVariable : "base_url";
  const base_url = field === "base_url" ? settings.base_url : env[field] || undefined;
  if (base_url === undefined) return {};
  if (/^https?:\/\/[^/]/.test(base_url) && URL.canParse(base_url)) return { base_url };
  throw new RequestError({
    code: "DROVER-LLM-003",
    field,
    message: `${field} is ${JSON.stringify(base_url)}, which is not the URL of a web server.`,
    next: "Use a URL with http:// or https:// and a host name.",
  });
}
