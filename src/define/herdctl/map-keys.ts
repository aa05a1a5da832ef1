import { resolve } from "node:path";
import { isRecord } from "../merge-keys.ts";
import { mapSchedules } from "./map-schedules.ts";
import { note, type Source } from "./source.ts";
import { mapVariables } from "./map-variables.ts";

type Keys = Record<string, unknown>;

/** Converts the keys of an agent, of the defaults or of an agent's overrides to Drover's keys. Makes paths absolute. */
export function mapKeys(source: Source, directory: string): Keys {
  const mapped: Keys = {};
  for (const [key, value] of Object.entries(source.keys)) {
    if (value === null || value === undefined) continue;
    const mapper = Object.hasOwn(mappers, key) ? mappers[key] : undefined;
    if (mapper === undefined) note(source, [key], "is an unknown key; it was skipped");
    else if (typeof mapper === "string") note(source, [key], mapper);
    else merge(mapped, mapper(value, source, directory));
  }
  return mapVariables(mapped, source);
}

function merge(target: Keys, changes: Keys): void {
  for (const [key, value] of Object.entries(changes))
    target[key] = isRecord(value) && isRecord(target[key]) ? { ...target[key], ...value } : value;
}

type KeyMapper = (value: unknown, source: Source, directory: string) => Keys;
const copyAs =
  (key: string): KeyMapper =>
  (value) => ({ [key]: value });

/** How each key is converted. A string is the note for a key that is not imported. */
const mappers: Record<string, KeyMapper | string> = {
  name: copyAs("name"),
  description: copyAs("description"),
  system_prompt: copyAs("system_prompt"),
  model: copyAs("model"),
  max_turns: copyAs("max_turns"),
  working_directory: mapWorkingDirectory("working_directory"),
  workspace: mapWorkingDirectory("workspace"),
  permission_mode: (value, source) => ({ permissions: mapMode(value, ["permission_mode"], source) }),
  allowed_tools: (value) => ({ permissions: { allowed_tools: value } }),
  denied_tools: (value) => ({ permissions: { denied_tools: value } }),
  permissions: mapPermissions,
  mcp_servers: mapMcpServers,
  session: mapSession,
  instances: (value, source) => {
    const { max_concurrent, ...others } = isRecord(value) ? value : {};
    for (const key of Object.keys(others)) note(source, ["instances", key], "has no equivalent");
    return max_concurrent === undefined ? {} : { max_concurrent };
  },
  runtime: (value) => ({ executor: value === "cli" ? "claude" : "claude-sdk" }),
  setting_sources: mapSettingSources,
  // mapHooks converts the hooks of all sources together.
  hooks: () => ({}),
  schedules: mapSchedules,
  default_prompt: "has no equivalent except in schedules: pass the prompt of a run with --prompt",
  identity: "has no equivalent: write it into system_prompt",
  repo: "has no equivalent: clone the repository and set working_directory to the clone",
  work_source: "has no equivalent: submit a run for each item with POST /runs or `drover run`",
  chat: "has no equivalent: `drover chat` talks to an agent in the terminal",
  docker:
    "has no equivalent: set `isolation` in the profile of the runner, and `limits` in the agent. The agent is NOT in a container",
  plugins: "has no equivalent",
  tools: "has no equivalent: tools that it omits stay available. List them in permissions.denied_tools",
  metadata_file: "has no equivalent: Drover keeps the files a run leaves behind",
};

function mapWorkingDirectory(key: string): KeyMapper {
  return (value, source, base) => {
    const root = isRecord(value) ? value["root"] : value;
    if (isRecord(value))
      for (const option of Object.keys(value))
        if (option !== "root") note(source, [key, option], "has no equivalent: clone the repository yourself");
    if (typeof root !== "string") {
      note(source, [key], "is not a path; it was skipped");
      return {};
    }
    if (root.startsWith("~")) note(source, [key], "starts with ~, which Drover does not expand: write the whole path");
    return { working_directory: root.startsWith("~") || root.includes("${") ? root : resolve(base, root) };
  };
}

const modes = new Set(["default", "acceptEdits", "bypassPermissions", "plan"]);

/** An unknown mode becomes `default`, which allows the least. */
function mapMode(value: unknown, path: readonly string[], source: Source): Keys {
  if (typeof value === "string" && modes.has(value)) return { mode: value };
  const explanation =
    value === "dontAsk"
      ? "became `default`: in an unattended run, a question is denied at once"
      : `is not a mode of Drover; it became \`default\`, which asks before it changes anything`;
  note(source, path, `${String(value)} ${explanation}`);
  return { mode: "default" };
}

/** The `permissions` object of older herdctl versions. */
function mapPermissions(value: unknown, source: Source): Keys {
  if (!isRecord(value)) {
    note(source, ["permissions"], "is not an object; it was skipped");
    return {};
  }
  const { mode, allowed_tools, denied_tools, bash, ...others } = value;
  for (const key of Object.keys(others)) note(source, ["permissions", key], "has no equivalent");
  const shell = isRecord(bash) ? bash : {};
  const allowed = toStrings(shell["allowed_commands"]).map((command) => `Bash(${command}:*)`);
  const denied = toStrings(shell["denied_patterns"]).map((pattern) =>
    pattern.endsWith("*") ? `Bash(${pattern.replace(/[\s*]+$/, "")}:*)` : `Bash(${pattern})`,
  );
  if (bash !== undefined)
    note(source, ["permissions", "bash"], "became tools like Bash(git:*): check that they mean the same");
  return {
    permissions: {
      ...(mode === undefined ? {} : mapMode(mode, ["permissions", "mode"], source)),
      ...(allowed_tools === undefined && allowed.length === 0
        ? {}
        : { allowed_tools: [...toStrings(allowed_tools), ...allowed] }),
      ...(denied_tools === undefined && denied.length === 0
        ? {}
        : { denied_tools: [...toStrings(denied_tools), ...denied] }),
    },
  };
}

function toStrings(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function mapMcpServers(value: unknown, source: Source): Keys {
  const servers = Object.entries(isRecord(value) ? value : {}).flatMap(([name, server]): [string, Keys][] => {
    const path = ["mcp_servers", name];
    const { type, command, args, env, url, headers, ...others } = isRecord(server) ? server : {};
    if (type === "sse" || (command === undefined && url === undefined)) {
      note(
        source,
        path,
        type === "sse"
          ? "uses SSE, which Drover does not support; use its http address"
          : "has neither command nor url",
      );
      return [];
    }
    for (const key of Object.keys(others)) note(source, [...path, key], "has no equivalent");
    const fields = url === undefined ? { command, args, env } : { type: "http", url, headers };
    return [[name, Object.fromEntries(Object.entries(fields).filter(([, part]) => part !== undefined))]];
  });
  return servers.length === 0 ? {} : { mcp_servers: Object.fromEntries(servers) };
}

function mapSession(value: unknown, source: Source): Keys {
  const { timeout, max_turns, model, ...others } = isRecord(value) ? value : {};
  for (const key of Object.keys(others)) note(source, ["session", key], "has no equivalent");
  const seconds = toSeconds(timeout);
  if (timeout !== undefined && seconds === null)
    note(
      source,
      ["session", "timeout"],
      `${String(timeout)} is not a duration such as 30m or 24h; session.timeout was skipped`,
    );
  return {
    ...(seconds === null ? {} : { session: { timeout: seconds } }),
    // The agent's own keys take precedence over those of its session.
    ...(max_turns === undefined || source.keys["max_turns"] !== undefined ? {} : { max_turns }),
    ...(model === undefined || source.keys["model"] !== undefined ? {} : { model }),
  };
}

function toSeconds(time: unknown): number | null {
  const match = /^(\d+)\s*([smhd])$/.exec(String(time));
  return match && Number(match[1]) * { s: 1, m: 60, h: 3600, d: 86_400 }[match[2] as "s" | "m" | "h" | "d"];
}

function mapSettingSources(value: unknown, source: Source): Keys {
  const names = toStrings(value);
  if (names.includes("user")) note(source, ["setting_sources"], "user has no equivalent: user settings are not loaded");
  return names.some((name) => name === "project" || name === "local") ? { trust_project_settings: true } : {};
}
