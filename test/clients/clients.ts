import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const clientNames = ["claude", "codex", "gemini"] as const;
export type ClientName = (typeof clientNames)[number];

/** How to start a client so that it talks only to a model server on this machine. */
export interface PreparedClient {
  /** The absolute path of the program. */
  bin: string;
  env: Readonly<Record<string, string>>;
}

const platform = `${process.platform}-${process.arch}`;

export interface ClientOptions {
  /** This directory must exist. */
  home: string;
  /** The model server's URL. */
  url: string;
  /** The directory of the clients' package.json. Defaults to this one. */
  directory?: string;
}

/** Writes the client's configuration into `home`. */
export function prepareClient(name: ClientName, options: ClientOptions): PreparedClient {
  const packages = join(options.directory ?? import.meta.dirname, "node_modules");
  return prepare[name](options.home, options.url, packages);
}

const prepare: Readonly<Record<ClientName, (home: string, url: string, packages: string) => PreparedClient>> = {
  claude: (home, url, packages) => ({
    bin: installed(packages, "@anthropic-ai", `claude-agent-sdk-${platform}`, "claude"),
    env: {
      HOME: home,
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: "sk-ant-scripted",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      CLAUDE_CODE_MAX_RETRIES: "1",
    },
  }),
  codex(home, url, packages) {
    const codexHome = join(home, ".codex");
    mkdirSync(codexHome, { recursive: true });
    writeFileSync(join(codexHome, "config.toml"), codexConfig(url));
    return {
      bin: nativeCodex(packages),
      env: { HOME: home, CODEX_HOME: codexHome, OPENAI_API_KEY: "sk-scripted" },
    };
  },
  gemini(home, url, packages) {
    mkdirSync(join(home, ".gemini"), { recursive: true });
    writeFileSync(join(home, ".gemini", "settings.json"), JSON.stringify(geminiSettings, null, 2));
    return {
      // A script with a `node` shebang, so node must be on PATH.
      bin: installed(packages, "@google", "gemini-cli", "bundle", "gemini.js"),
      env: {
        HOME: home,
        GEMINI_API_KEY: "scripted",
        GOOGLE_GEMINI_BASE_URL: url,
        GEMINI_CLI_NO_RELAUNCH: "1",
      },
    };
  },
};

/** Skips the launcher script, which costs a Node start and hides the real process. */
function nativeCodex(packages: string): string {
  const vendor = installed(packages, "@openai", `codex-${platform}`, "vendor");
  const target = readdirSync(vendor).find((entry) => existsSync(join(vendor, entry, "bin", "codex")));
  return join(vendor, target ?? "", "bin", "codex");
}

function installed(packages: string, ...names: string[]): string {
  const path = join(packages, ...names);
  if (!existsSync(path)) throw new Error(`${path} is missing; \`npm test\` installs the clients`);
  return path;
}

/** Disables plugins and metrics, which would wait for unreachable hosts, and retries, which would hide failures. */
const codexConfig = (url: string): string => `model = "gpt-5.5"
model_provider = "local"

[analytics]
enabled = false

[otel]
metrics_exporter = "none"

[features]
plugins = false

[model_providers.local]
name = "local"
base_url = "${url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 0
stream_max_retries = 0
`;

const geminiSettings = {
  security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
  general: { enableAutoUpdate: false, enableAutoUpdateNotification: false, maxAttempts: 1, retryFetchErrors: false },
};
