import { readFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { afterEach, describe, expect, it } from "vitest";
import { describeContract } from "../../test/contract/contract.ts";
import { providerContract, type ProviderSubject } from "../../test/contract/provider.ts";
import { createMemoryStore, newId, startScriptedService } from "../../test/fixtures/llm/scripted-service.ts";
import { startModelServer } from "../../test/model-server/server.ts";
import { createProvider } from "./conversation.ts";
import type { ProviderDefinition } from "./definition.ts";
import { chooseProvider, openProvider } from "./providers.ts";
import { createScriptedGenerate } from "./scripted.ts";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean();
});

const host = {
  // This directory has the packages that Drover does not install.
  directory: join(import.meta.dirname, "../../test/clients"),
  workDirectory: import.meta.dirname,
  start: (): never => {
    throw new Error("This provider starts no program.");
  },
};

/** The address in the form that each provider expects, and what its protocol cannot express. */
const overHttp: Record<string, { path: string; env: Record<string, string>; cannot?: ProviderSubject["cannot"] }> = {
  anthropic: { path: "", env: { ANTHROPIC_API_KEY: "key" } },
  openai: { path: "/v1", env: { OPENAI_API_KEY: "key" } },
  // The input of its calls is an object instead of text.
  google: { path: "/v1beta", env: { GEMINI_API_KEY: "key" }, cannot: ["cut input"] },
  ollama: { path: "/v1", env: {} },
  "openai-compatible": { path: "/v1", env: {} },
  bedrock: { path: "", env: { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "secret" } },
};

for (const [name, { path, env, cannot }] of Object.entries(overHttp))
  describeContract(`the ${name} provider`, providerContract, async () => {
    const { server, ...scripted } = await startScriptedService();
    cleanups.push(server.stop);
    const settings = { base_url: server.url + path };
    return {
      provider: await openProvider(name, { ...host, settings, env, store: createMemoryStore(), newId }),
      model: "model",
      ...(cannot ? { cannot } : {}),
      ...scripted,
    } satisfies ProviderSubject;
  });

describeContract("the scripted provider", providerContract, async () => {
  const turns: Parameters<typeof createScriptedGenerate>[0]["turns"] = [];
  const requestTexts: string[][] = [];
  const generate = createScriptedGenerate({ turns });
  return {
    provider: createProvider(
      "scripted",
      {
        async generate(conversation, options) {
          requestTexts.push(
            conversation.messages.flatMap((message) => {
              if (message.role === "user") return [message.text];
              return message.role === "tool" ? message.results.map(({ output }) => output) : [];
            }),
          );
          return generate(conversation, options);
        },
      },
      createMemoryStore(),
      newId,
    ),
    model: "script",
    // The scripted provider has no connection that could fail.
    cannot: [
      "refused",
      "cut",
      "garbage",
      "malformed chunk",
      "error in the stream",
      "early end",
      "cut input",
      "stall",
      "token limit",
      "rate_limit",
      "auth",
    ],
    script(...answers) {
      for (const answer of answers) {
        if ("text" in answer) turns.push({ text: answer.text });
        else if ("slow" in answer) turns.push({ text: answer.slow });
        else if ("tool" in answer) turns.push({ tools: [{ name: answer.tool, input: answer.input }] });
        else if ("tools" in answer) turns.push({ tools: answer.tools });
        else turns.push({ error: { kind: "network", message: "Try again." } });
      }
    },
    lastRequest: () => requestTexts.at(-1) ?? [],
    stalledCount: () => 0,
  } satisfies ProviderSubject;
});

describeContract("the example provider in docs/writing-providers.md", providerContract, async () => {
  const { server, ...scripted } = await startScriptedService();
  cleanups.push(server.stop);
  const { open } = await compileDocumentedProvider();
  const model = await open({ base_url: `${server.url}/v1` }, { ...host, env: {} });
  return {
    provider: createProvider("example", model, createMemoryStore(), newId),
    model: "small",
    // The example's answers are not streamed.
    cannot: ["malformed chunk", "error in the stream", "early end"],
    ...scripted,
  } satisfies ProviderSubject;
});

/** Compiles the example provider of the page as if it were in this directory. */
async function compileDocumentedProvider(): Promise<ProviderDefinition> {
  const page = readFileSync(join(import.meta.dirname, "../../docs/writing-providers.md"), "utf8");
  const contents = /```ts \[src\/llm\/example\.ts\]\n(.*?)```/s.exec(page)?.[1] ?? "";
  const { outputFiles } = await build({
    stdin: { contents, loader: "ts", resolveDir: import.meta.dirname },
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    logLevel: "silent",
  });
  const url = `data:text/javascript;base64,${Buffer.from(outputFiles[0]!.contents).toString("base64")}`;
  return ((await import(url)) as { example: ProviderDefinition }).example;
}

describe("choosing a provider", () => {
  const options = { ...host, store: createMemoryStore(), newId };
  const key = { ANTHROPIC_API_KEY: "key" };
  it.each([
    ["antropic", {}, {}, { code: "DROVER-LLM-001", message: expect.stringContaining("Did you mean anthropic?") }],
    ["anthropic", {}, {}, { code: "DROVER-LLM-002", field: "ANTHROPIC_API_KEY" }],
    ["ollama", { base_url: "localhost:11434" }, {}, { code: "DROVER-LLM-003", field: "base_url" }],
    ["ollama", {}, { OLLAMA_HOST: "a host" }, { code: "DROVER-LLM-003", field: "OLLAMA_HOST" }],
    [
      "anthropic",
      {},
      { ...key, ANTHROPIC_BASE_URL: "proxy.example" },
      { code: "DROVER-LLM-003", field: "ANTHROPIC_BASE_URL" },
    ],
    ["anthropic", { base_url: "http://[" }, key, { code: "DROVER-LLM-003", field: "base_url" }],
    ["openai-compatible", {}, {}, { code: "DROVER-LLM-003" }],
    ["bedrock", {}, { AWS_ACCESS_KEY_ID: "id" }, { code: "DROVER-LLM-002", field: "AWS_SECRET_ACCESS_KEY" }],
    ["scripted", { script: "/nowhere/script.yaml" }, {}, { code: "DROVER-LLM-004" }],
  ])("refuses %s with %j and %j, and says what to do", async (name, settings, env, fault) => {
    await expect(openProvider(name, { ...options, settings, env })).rejects.toMatchObject({
      ...fault,
      next: expect.stringMatching(/\w/),
    });
  });

  it.each([
    ["anthropic", {}, "ANTHROPIC_API_KEY", "in the environment of the runner, or of the command"],
    ["openai", { OPENAI_API_KEY: "" }, "OPENAI_API_KEY", "in the environment of the runner, or of the command"],
    ["google", {}, "GEMINI_API_KEY", "in the environment of the runner, or of the command"],
    ["bedrock", {}, "AWS_ACCESS_KEY_ID", "in the environment of the runner, or of the command"],
    ["bedrock", { AWS_ACCESS_KEY_ID: "id" }, "AWS_SECRET_ACCESS_KEY", "in the environment of the runner"],
  ])("%s with %j says which key is missing and where to set it", async (name, env, variable, place) => {
    await expect(openProvider(name, { ...options, settings: {}, env })).rejects.toMatchObject({
      code: "DROVER-LLM-002",
      field: variable,
      message: expect.stringMatching(new RegExp(`^The provider ${name} needs .*, but ${variable} is not set\\.$`)),
      next: expect.stringMatching(new RegExp(`^Set .*\\b${variable}\\b.* ${place}`)),
    });
  });

  it.each([
    ["claude-code", "@anthropic-ai/claude-agent-sdk"],
    ["bedrock", "@ai-sdk/amazon-bedrock"],
  ])("reports how to install the package that %s needs", async (name, packageName) => {
    const directory = import.meta.dirname;
    const env = { AWS_BEARER_TOKEN_BEDROCK: "token" };
    await expect(openProvider(name, { ...options, directory, settings: {}, env })).rejects.toMatchObject({
      code: "DROVER-LLM-006",
      next: expect.stringMatching(new RegExp(`npm install ${packageName}@\\d`)),
    });
  });

  it("uses --provider first, then the provider of the agent, of the profile and of drover.yaml", async () => {
    const at = { directory: import.meta.dirname, env: {} };
    const names = { option: "openai", agent: "google", profile: "ollama", config: "scripted" };
    const { option: _option, ...withoutOption } = names;
    const { agent: _agent, ...withoutAgent } = withoutOption;
    const { profile: _profile, ...onlyConfig } = withoutAgent;
    expect(await chooseProvider(names, at)).toBe("openai");
    expect(await chooseProvider(withoutOption, at)).toBe("google");
    expect(await chooseProvider(withoutAgent, at)).toBe("ollama");
    expect(await chooseProvider(onlyConfig, at)).toBe("scripted");
    await expect(chooseProvider({ option: "opena" }, at)).rejects.toMatchObject({
      code: "DROVER-LLM-001",
      message: expect.stringContaining("Did you mean openai?"),
    });
  });

  it("uses the first provider that is set up if none is named, and never scripted", async () => {
    const service = await startModelServer([]);
    cleanups.push(service.stop);
    const set = { ANTHROPIC_API_KEY: "key", OPENAI_API_KEY: "key", GEMINI_API_KEY: "key", OLLAMA_HOST: service.url };
    // The Agent SDK accepts the same key, and comes first if it is installed.
    expect(await chooseProvider({}, { ...host, env: set })).toBe("claude-code");
    const directory = import.meta.dirname;
    const chosenNames: string[] = [];
    for (const without of ["", ...Object.keys(set)]) {
      if (without !== "") Reflect.set(set, without, "");
      if (without !== "OLLAMA_HOST") chosenNames.push(await chooseProvider({}, { directory, env: set }));
    }
    expect(chosenNames).toEqual(["anthropic", "openai", "google", "ollama"]);
    // Nothing listens on this port any longer.
    await service.stop();
    await expect(chooseProvider({}, { directory, env: { OLLAMA_HOST: service.url } })).rejects.toMatchObject({
      code: "DROVER-LLM-005",
      next: expect.stringContaining("ANTHROPIC_API_KEY"),
    });
  });
});
