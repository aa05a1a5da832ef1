import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { invocationOf } from "../../../../test/fixtures/execute/memory-port.ts";
import type { Agent } from "../../../model/agent.ts";
import { claude, claudeArgs } from "./claude.ts";
import type { Turn } from "./definition.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "drover-claude-"));
  for (const name of ["home", "own", "work", "tmp"]) mkdirSync(join(folder, name));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function turnOf(agent: Partial<Agent> = {}, more: Partial<Turn> = {}): Turn {
  return {
    invocation: invocationOf("r1", { type: "autonomous", ...agent }),
    prompt: "do it",
    systemPrompt: null,
    mode: "acceptEdits",
    session: null,
    fork: false,
    config: {},
    workDir: join(folder, "work"),
    homeDir: join(folder, "home"),
    tmpDir: join(folder, "tmp"),
    outputLines: () => Promise.resolve([]),
    env: { HOME: join(folder, "home") },
    isRoot: false,
    ...more,
  };
}

test("each permission mode is claude's own of the same name", () => {
  for (const mode of ["default", "acceptEdits", "bypassPermissions", "plan"] as const)
    expect(claudeArgs(turnOf({}, { mode }), {})).toContain(`--permission-mode=${mode}`);
});

test("nothing of the repository is loaded unless the agent trusts it", () => {
  expect(claudeArgs(turnOf(), {})).toEqual(expect.arrayContaining(["--setting-sources=user", "--strict-mcp-config"]));
  const trusting = claudeArgs(turnOf({ trust_project_settings: true }), {});
  expect(trusting.filter((word) => /setting-sources|strict-mcp/.test(word))).toEqual([]);
});

test("no value of an agent becomes an option, however it begins", () => {
  const hostile = [
    "--dangerously-skip-permissions",
    "-p",
    "--",
    "-",
    "--resume=x",
    "--model",
    "=",
    "a b",
    "$(id)",
    "\n--x",
  ];
  for (const value of hostile) {
    const agent: Partial<Agent> = {
      model: value,
      permissions: { mode: "acceptEdits", allowed_tools: [value, "Read"], denied_tools: [value] },
    };
    const args = claudeArgs(turnOf(agent, { session: "s" }), { systemPrompt: value, mcpConfig: value });
    expect(args.slice(4)).toEqual([
      "--permission-mode=acceptEdits",
      "--setting-sources=user",
      "--strict-mcp-config",
      `--allowedTools=${value}`,
      "--allowedTools=Read",
      `--disallowedTools=${value}`,
      `--model=${value}`,
      `--append-system-prompt-file=${value}`,
      `--mcp-config=${value}`,
      "--resume=s",
    ]);
  }
});

test("limits of the agent become limits of the client", () => {
  const args = claudeArgs(turnOf({ max_turns: 7, budget: { cost_usd: 0.5 } }), {});
  expect(args).toEqual(expect.arrayContaining(["--max-turns=7", "--max-budget-usd=0.5"]));
});

test("system prompt and MCP servers go through files that nobody else can read", async () => {
  const mcp_servers = { one: { command: "server", env: { TOKEN: "secret" } } };
  const { args } = await claude.definition.prepare(turnOf({ mcp_servers }, { systemPrompt: "Be brief." }));
  const fileOf = (flag: string): string => args.find((word) => word.startsWith(flag))!.slice(flag.length);
  const prompt = fileOf("--append-system-prompt-file=");
  const config = fileOf("--mcp-config=");
  expect(readFileSync(prompt, "utf8")).toBe("Be brief.");
  expect(JSON.parse(readFileSync(config, "utf8"))).toEqual({ mcpServers: mcp_servers });
  for (const file of [prompt, config]) expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(args.join(" ")).not.toContain("secret");
});

test("a HOME of the session's own begins with the operator's login and is not undone by CLAUDE_CONFIG_DIR", async () => {
  mkdirSync(join(folder, "home", ".claude"));
  writeFileSync(join(folder, "home", ".claude", ".credentials.json"), "{}");
  const env = { HOME: join(folder, "home"), CLAUDE_CONFIG_DIR: "/elsewhere" };
  const shared = await claude.definition.prepare(turnOf({}, { env }));
  expect(shared.env).not.toHaveProperty("CLAUDE_CONFIG_DIR");
  const own = await claude.definition.prepare(turnOf({}, { env, homeDir: join(folder, "own") }));
  expect(own.env).toMatchObject({ CLAUDE_CONFIG_DIR: join(folder, "own", ".claude") });
  expect(readFileSync(join(folder, "own", ".claude", ".credentials.json"), "utf8")).toBe("{}");
});

test("the login does not leave through a link that the agent has put in the place of .claude", async () => {
  mkdirSync(join(folder, "home", ".claude"));
  writeFileSync(join(folder, "home", ".claude", ".credentials.json"), "{}");
  symlinkSync(join(folder, "work"), join(folder, "own", ".claude"));
  await expect(claude.definition.prepare(turnOf({}, { homeDir: join(folder, "own") }))).rejects.toThrow(/is a link/);
  expect(readdirSync(join(folder, "work"))).toEqual([]);
});

test("it is kept from the network but for its work, unless the operator says otherwise", async () => {
  const name = "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC";
  expect((await claude.definition.prepare(turnOf())).env).toMatchObject({ [name]: "1", DISABLE_AUTOUPDATER: "1" });
  expect((await claude.definition.prepare(turnOf({}, { env: { [name]: "0" } }))).env).toMatchObject({ [name]: "0" });
});
