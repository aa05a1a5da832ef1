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
    const map = Object.hasOwn(maps, key) ? maps[key] : undefined;
    if (map === undefined) note(source, [key], "is not a key that this import knows; it was left out");
    else if (typeof map === "string") note(source, [key], map);
    else merge(mapped, map(value, source, directory));
  }
  return mapVariables(mapped, source);
}

function merge(into: Keys, from: Keys): void {
  for (const [key, value] of Object.entries(from))
    into[key] = isRecord(value) && isRecord(into[key]) ? { ...into[key], ...value } : value;
}

type Map = (value: unknown, source: Source, directory: string) => Keys;
const same =
  (key: string): Map =>
  (value) => ({ [key]: value });

/** How each key is converted. A string says why a key is not imported. */
const maps: Record<string, Map | string> = {
  name: same("name"),
  description: same("description"),
  system_prompt: same("system_prompt"),
  model: same("model"),
  max_turns: same("max_turns"),
  working_directory: workingDirectory("working_directory"),
  workspace: workingDirectory("workspace"),
  permission_mode: (value, source) => ({ permissions: mode(value, ["permission_mode"], source) }),
  allowed_tools: (value) => ({ permissions: { allowed_tools: value } }),
  denied_tools: (value) => ({ permissions: { denied_tools: value } }),
  permissions,
  mcp_servers: mcpServers,
  session,
  instances: (value, source) => {
    const { max_concurrent, ...others } = isRecord(value) ? value : {};
    for (const key of Object.keys(others)) note(source, ["instances", key], "has no equivalent");
    return max_concurrent === undefined ? {} : { max_concurrent };
  },
  runtime: (value) => ({ executor: value === "cli" ? "claude" : "claude-sdk" }),
  setting_sources: settingSources,
  // mapHooks handles the hooks of all sources together
  hooks: () => ({}),
  schedules: mapSchedules,
  default_prompt: "has no equivalent except in schedules: give a run its prompt with --prompt",
  identity: "has no equivalent: write it into system_prompt",
  repo: "has no equivalent: clone the repository and set working_directory to the clone",
  work_source: "has no equivalent: submit a run for each item with POST /runs or `drover run`",
  chat: "has no equivalent: `drover chat` talks to an agent in the terminal",
  docker:
    "has no equivalent: set `isolation` in the profile of the runner, and `limits` in the agent. The agent is NOT in a container",
  plugins: "has no equivalent",
  tools: "has no equivalent: tools that it leaves out stay available. Name them in permissions.denied_tools",
  metadata_file: "has no equivalent: Drover keeps the files a run leaves behind",
};

function workingDirectory(key: string): Map {
  return (value, source, base) => {
    const root = isRecord(value) ? value["root"] : value;
    if (isRecord(value))
      for (const other of Object.keys(value))
        if (other !== "root") note(source, [key, other], "has no equivalent: clone the repository yourself");
    if (typeof root !== "string") {
      note(source, [key], "is not a path; it was left out");
      return {};
    }
    if (root.startsWith("~")) note(source, [key], "starts with ~, which Drover does not expand: write the whole path");
    return { working_directory: root.startsWith("~") || root.includes("${") ? root : resolve(base, root) };
  };
}

const modes = new Set(["default", "acceptEdits", "bypassPermissions", "plan"]);

/** An unknown mode becomes `default`, which allows the least. */
function mode(value: unknown, path: readonly string[], source: Source): Keys {
  if (typeof value === "string" && modes.has(value)) return { mode: value };
  const why =
    value === "dontAsk"
      ? "became `default`: in a run that nobody attends, a question is denied at once"
      : `is not a mode of Drover; it became \`default\`, which asks before it changes anything`;
  note(source, path, `${String(value)} ${why}`);
  return { mode: "default" };
}

/** The `permissions` object of older herdctl versions. */
function permissions(value: unknown, source: Source): Keys {
  if (!isRecord(value)) {
    note(source, ["permissions"], "is not an object; it was left out");
    return {};
  }
  const { mode: given, allowed_tools, denied_tools, bash, ...others } = value;
  for (const key of Object.keys(others)) note(source, ["permissions", key], "has no equivalent");
  const shell = isRecord(bash) ? bash : {};
  const allowed = strings(shell["allowed_commands"]).map((command) => `Bash(${command}:*)`);
  const denied = strings(shell["denied_patterns"]).map((pattern) =>
    pattern.endsWith("*") ? `Bash(${pattern.replace(/[\s*]+$/, "")}:*)` : `Bash(${pattern})`,
  );
  if (bash !== undefined)
    note(source, ["permissions", "bash"], "became tools like Bash(git:*): check that they mean the same");
  return {
    permissions: {
      ...(given === undefined ? {} : mode(given, ["permissions", "mode"], source)),
      ...(allowed_tools === undefined && allowed.length === 0
        ? {}
        : { allowed_tools: [...strings(allowed_tools), ...allowed] }),
      ...(denied_tools === undefined && denied.length === 0
        ? {}
        : { denied_tools: [...strings(denied_tools), ...denied] }),
    },
  };
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function mcpServers(value: unknown, source: Source): Keys {
  const servers = Object.entries(isRecord(value) ? value : {}).flatMap(([name, server]): [string, Keys][] => {
    const at = ["mcp_servers", name];
    const { type, command, args, env, url, headers, ...others } = isRecord(server) ? server : {};
    if (type === "sse" || (command === undefined && url === undefined)) {
      note(
        source,
        at,
        type === "sse"
          ? "uses SSE, which Drover does not support; use its http address"
          : "names neither command nor url",
      );
      return [];
    }
    for (const key of Object.keys(others)) note(source, [...at, key], "has no equivalent");
    const given = url === undefined ? { command, args, env } : { type: "http", url, headers };
    return [[name, Object.fromEntries(Object.entries(given).filter(([, part]) => part !== undefined))]];
  });
  return servers.length === 0 ? {} : { mcp_servers: Object.fromEntries(servers) };
}

function session(value: unknown, source: Source): Keys {
  const { timeout, max_turns, model, ...others } = isRecord(value) ? value : {};
  for (const key of Object.keys(others)) note(source, ["session", key], "has no equivalent");
  const seconds = secondsOf(timeout);
  if (timeout !== undefined && seconds === null)
    note(source, ["session", "timeout"], `${String(timeout)} is not a time like 30m or 24h; it was left out`);
  return {
    ...(seconds === null ? {} : { session: { timeout: seconds } }),
    // the agent's own keys take precedence over those of its session
    ...(max_turns === undefined || source.keys["max_turns"] !== undefined ? {} : { max_turns }),
    ...(model === undefined || source.keys["model"] !== undefined ? {} : { model }),
  };
}

function secondsOf(time: unknown): number | null {
  const found = /^(\d+)\s*([smhd])$/.exec(String(time));
  return found && Number(found[1]) * { s: 1, m: 60, h: 3600, d: 86_400 }[found[2] as "s" | "m" | "h" | "d"];
}

function settingSources(value: unknown, source: Source): Keys {
  const given = strings(value);
  if (given.includes("user")) note(source, ["setting_sources"], "user has no equivalent: user settings are not loaded");
  return given.some((one) => one === "project" || one === "local") ? { trust_project_settings: true } : {};
}
