import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type ProfileHost, loadProfile } from "../define/profiles.ts";
import { locateClient } from "../execute/executors/clients/locate-client.ts";
import { clients } from "../execute/executors/clients/index.ts";
import { agentSdk } from "../llm/claude-code/sdk.ts";
import { findPackage, describeMissingPackage } from "../llm/optional-package.ts";
import { execute } from "../process/execute.ts";
import { builtInExecutors } from "../runner.ts";
import type { Environment } from "../model/environment.ts";

/** An agent client on this machine, or why it is missing. */
export type FoundClient =
  | { found: true; path: string; version: string | null; why?: string }
  | { found: false; why: string; next: string };

/** Finds each agent client that Drover can drive, and its version. */
export async function findClients(env: Environment): Promise<Record<string, FoundClient>> {
  const entries = Object.values(clients).map(async ({ definition }): Promise<[string, FoundClient]> => {
    const located = locateClient(definition, {}, env);
    if (located.ok)
      return [definition.name, { found: true, path: located.path, ...(await readVersion(located.path, env)) }];
    const program = env[definition.binVariable] || definition.program;
    const location = env[definition.binVariable] ? `at ${definition.binVariable}` : "on PATH";
    const next = `${definition.install}, or set ${definition.binVariable} to its path.`;
    return [definition.name, { found: false, why: `no executable ${program} ${location}`, next }];
  });
  return Object.fromEntries(await Promise.all(entries));
}

/** Finds the Agent SDK package where the profile `claude-sdk` would load it from. */
export function findAgentSdk(
  profileDirectories: readonly string[],
  { cwd, env }: { cwd: string; env: Environment },
): FoundClient {
  const host: ProfileHost = { builtIn: builtInExecutors, hasCommand: () => true };
  const loaded = loadProfile("claude-sdk", profileDirectories, host);
  const packageLocation = { directory: loaded.ok ? loaded.profile.directory : cwd, env };
  const missing = describeMissingPackage(agentSdk, packageLocation);
  if (missing !== null) return { found: false, why: missing.message, next: missing.next };
  const path = dirname(findPackage(agentSdk, packageLocation)!);
  // Every package has a package.json with a version.
  const { version } = JSON.parse(readFileSync(join(path, "package.json"), "utf8")) as { version: string };
  return { found: true, path, version };
}

const versionTimeoutMs = 5000;

async function readVersion(path: string, env: Environment): Promise<{ version: string | null; why?: string }> {
  const { stdout, error } = await execute(
    { executable: path, arguments: ["--version"], timeoutMs: versionTimeoutMs },
    {
      environment: { mode: "merge" },
      parentEnvironment: env,
      graceMs: 200,
      capture: { mode: "both", maxBytes: 4096, onLimit: "truncate" },
    },
  );
  if (error) return { version: null, why: `--version failed: ${error.message}` };
  const text = Buffer.from(stdout.head).toString("utf8");
  return { version: /\d+(?:\.\d+)+[\w.+-]*/.exec(text)?.[0] ?? (text.trim().split("\n")[0] || null) };
}
