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
import { createInvocation } from "../../../../test/fixtures/execute/memory-port.ts";
import type { Agent } from "../../../model/agent.ts";
import { claude, toClaudeArgs } from "./claude.ts";
import type { Turn } from "./definition.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-claude-"));
  for (const name of ["home", "own", "work", "tmp"]) mkdirSync(join(directory, name));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function createTurn(agent: Partial<Agent> = {}, overrides: Partial<Turn> = {}): Turn {
  return {
    invocation: createInvocation("r1", { type: "autonomous", ...agent }),
    prompt: "do it",
    systemPrompt: null,
    mode: "acceptEdits",
    session: null,
    fork: false,
    config: {},
    workDir: join(directory, "work"),
    homeDir: join(directory, "home"),
    tmpDir: join(directory, "tmp"),
    outputLines: () => Promise.resolve([]),
    env: { HOME: join(directory, "home") },
    isRoot: false,
    ...overrides,
  };
}

test("passes each permission mode to claude under the same name", () => {
  for (const mode of ["default", "acceptEdits", "bypassPermissions", "plan"] as const)
    expect(toClaudeArgs(createTurn({}, { mode }), {})).toContain(`--permission-mode=${mode}`);
});

test("passes no amount for a budget of tokens only", () => {
  const args = toClaudeArgs(createTurn({ budget: { tokens: 1000 } }), {});
  expect(args.filter((arg) => arg.startsWith("--max-budget-usd"))).toEqual([]);
});

test("loads nothing from the repository unless the agent trusts it", () => {
  expect(toClaudeArgs(createTurn(), {})).toEqual(
    expect.arrayContaining(["--setting-sources=user", "--strict-mcp-config"]),
  );
  const trusting = toClaudeArgs(createTurn({ trust_project_settings: true }), {});
  expect(trusting.filter((word) => /setting-sources|strict-mcp/.test(word))).toEqual([]);
});

test("never turns an agent's value into an option", () => {
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
    const args = toClaudeArgs(createTurn(agent, { session: "s" }), { systemPrompt: value, mcpConfig: value });
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

test("passes the agent's limits to the client", () => {
  const args = toClaudeArgs(createTurn({ max_turns: 7, budget: { cost_usd: 0.5 } }), {});
  expect(args).toEqual(expect.arrayContaining(["--max-turns=7", "--max-budget-usd=0.5"]));
});

test("passes the system prompt and MCP servers in private files", async () => {
  const mcp_servers = { one: { command: "server", env: { TOKEN: "secret" } } };
  const { args } = await claude.definition.prepare(createTurn({ mcp_servers }, { systemPrompt: "Be brief." }));
  const readFlag = (flag: string): string => args.find((word) => word.startsWith(flag))!.slice(flag.length);
  const prompt = readFlag("--append-system-prompt-file=");
  const config = readFlag("--mcp-config=");
  expect(readFileSync(prompt, "utf8")).toBe("Be brief.");
  expect(JSON.parse(readFileSync(config, "utf8"))).toEqual({ mcpServers: mcp_servers });
  for (const file of [prompt, config]) expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(args.join(" ")).not.toContain("secret");
});

test("copies the operator's login into a session's own HOME and overrides CLAUDE_CONFIG_DIR", async () => {
  mkdirSync(join(directory, "home", ".claude"));
  writeFileSync(join(directory, "home", ".claude", ".credentials.json"), "{}");
  const env = { HOME: join(directory, "home"), CLAUDE_CONFIG_DIR: "/elsewhere" };
  const shared = await claude.definition.prepare(createTurn({}, { env }));
  expect(shared.env).not.toHaveProperty("CLAUDE_CONFIG_DIR");
  const prepared = await claude.definition.prepare(createTurn({}, { env, homeDir: join(directory, "own") }));
  expect(prepared.env).toMatchObject({ CLAUDE_CONFIG_DIR: join(directory, "own", ".claude") });
  expect(readFileSync(join(directory, "own", ".claude", ".credentials.json"), "utf8")).toBe("{}");
});

test("refuses to copy the login through a link that the agent left as .claude", async () => {
  mkdirSync(join(directory, "home", ".claude"));
  writeFileSync(join(directory, "home", ".claude", ".credentials.json"), "{}");
  symlinkSync(join(directory, "work"), join(directory, "own", ".claude"));
  await expect(claude.definition.prepare(createTurn({}, { homeDir: join(directory, "own") }))).rejects.toThrow(
    /is a link/,
  );
  expect(readdirSync(join(directory, "work"))).toEqual([]);
});

test("turns off nonessential traffic unless the operator has set the variable", async () => {
  const name = "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC";
  expect((await claude.definition.prepare(createTurn())).env).toMatchObject({ [name]: "1", DISABLE_AUTOUPDATER: "1" });
  expect((await claude.definition.prepare(createTurn({}, { env: { [name]: "0" } }))).env).toMatchObject({
    [name]: "0",
  });
});
