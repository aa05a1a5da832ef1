import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, expect } from "vitest";
import { runsDirectory, workDirectory } from "../../../src/model/state-layout.ts";
import type { RunRequest } from "../../../src/model/run-request.ts";
import type { Run } from "../../../src/model/run.ts";
import { hasEnded } from "../../../src/model/states.ts";
import { openProfiles } from "../../../src/compose/open-profiles.ts";
import { startRunner } from "../../../src/runner.ts";
import { type ClientName, prepareClient } from "../../clients/clients.ts";
import { openHost, sampleAgent } from "../../fixtures/dispatch/host.ts";
import { type ModelServer, startModelServer } from "../../model-server/server.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).toReversed()) await cleanUp();
});

export interface Machine {
  directory: string;
  home: string;
  /** The work directory of a session on its runner. */
  scratch(session: string): string;
  stop(): Promise<void>;
}

/** A coordinator, a scripted model, and the runners that a test starts, each with its own HOME and state. */
export interface SessionFleet {
  host: Awaited<ReturnType<typeof openHost>>;
  model: ModelServer;
  /** `directory` reuses the directory of an earlier machine whose runner was stopped. */
  startMachine(options?: { profile?: Record<string, unknown>; directory?: string }): Promise<Machine>;
  run(prompt: string, changes?: Partial<RunRequest>): Promise<Run>;
  /** The messages of the last request to the model, without what the client adds around them. */
  lastRequestTexts(): string[];
}

export const secret = "canary-51e07cbb29";

export async function openFleet(
  client: ClientName | "claude-sdk",
  agent: Record<string, unknown> = {},
): Promise<SessionFleet> {
  const host = await openHost({ rescueEveryMs: 50 });
  await host.dispatcher.start();
  cleanups.push(host.dispose, host.close);
  host.agents.setFileAgents([
    sampleAgent({ name: client, type: "autonomous", command: null, executor: client, ...agent }),
  ]);
  const model = await startModelServer(({ messages }) => {
    const prompt = getLastLine(messages.findLast(({ role, text }) => role === "user" && text !== "")!.text);
    const [, path] = /^write (.*)$/.exec(prompt) ?? [];
    const written = messages.at(-1)!.tool_results.length > 0;
    if (prompt === "hang") return { hang: true };
    if (path !== undefined && !written)
      return { tool: { name: "write_file", input: { path, content: `x ${secret}` } } };
    return { text: `answer to: ${prompt}` };
  });
  cleanups.push(model.stop);
  return {
    host,
    model,
    async startMachine({ profile = {}, directory = createMachineDirectory() } = {}) {
      const home = join(directory, "home");
      for (const path of [home, join(directory, "state"), join(directory, "profiles")])
        mkdirSync(path, { recursive: true });
      const program = client === "claude-sdk" ? "claude" : client;
      const prepared = prepareClient(program, { home, url: model.url });
      // The runner loads the Agent SDK from here.
      if (client === "claude-sdk" && !existsSync(join(directory, "node_modules")))
        symlinkSync(join(import.meta.dirname, "../../clients/node_modules"), join(directory, "node_modules"));
      const env = {
        PATH: process.env["PATH"] ?? "",
        DROVER_TRUST: directory,
        ...prepared.env,
        [`${program.toUpperCase()}_BIN`]: prepared.bin,
        TEST_API_KEY: secret,
      };
      writeFileSync(join(directory, "profiles", `${client}.json`), JSON.stringify({ type: client, ...profile }));
      const opened = await openProfiles({
        names: [client],
        directories: [join(directory, "profiles")],
        env,
        onNotice: (message) => expect.fail(message),
      });
      const runner = await startRunner({
        port: host.port,
        profiles: opened.profiles,
        stateDirectory: join(directory, "state"),
        projectDir: directory,
        env,
        maxOutputKb: 1024,
        onNotice: () => undefined,
      });
      cleanups.push(opened.stop, runner.stop);
      return {
        directory,
        home,
        stop: runner.stop,
        scratch: (session) => join(workDirectory(runsDirectory(join(directory, "state"))), session),
      };
    },
    async run(prompt, changes = {}) {
      const run_id = await host.submit({ agent_name: client, prompt, ...changes });
      await expect.poll(async () => hasEnded((await host.run(run_id)).status), { interval: 20 }).toBe(true);
      return host.run(run_id);
    },
    lastRequestTexts: () =>
      model.requests
        .findLast(({ answered }) => answered === "turn")!
        .messages.filter(({ role, text }) => role !== "system" && text !== "")
        .map(({ role, text }) => `${role}: ${getLastLine(text)}`)
        .filter((line) => !/<\/(?:environment_context|session_context)>$/.test(line)),
  };
}

function createMachineDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "drover-machine-"));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

function getLastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1) ?? "";
}

/** The content of every file below a directory, keyed by path. */
export function readFilesBelow(directory: string): Record<string, string> {
  const contents: Record<string, string> = {};
  const walk = (path: string): void => {
    for (const name of readdirSync(path)) {
      const inner = join(path, name);
      if (statSync(inner).isDirectory()) walk(inner);
      else contents[relative(directory, inner)] = readFileSync(inner, "latin1");
    }
  };
  walk(directory);
  return contents;
}
