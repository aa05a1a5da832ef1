import { expect, test } from "vitest";
import { agentSchema } from "../../../model/agent.ts";
import { hostileValues, createTurn } from "./fixtures/turns.ts";
import { toGeminiPolicy } from "./gemini-policy.ts";
import { toGeminiArgs, toGeminiEnv } from "./gemini.ts";

test("reads the prompt from stdin", () => {
  expect(toGeminiArgs(createTurn({}), ["/t/p.toml"])).toEqual([
    "--output-format=stream-json",
    "--approval-mode=default",
    "--policy=/t/p.toml",
  ]);
  const session = "fa2d6767-54a0-462e-9cea-16714d03e360";
  expect(toGeminiArgs(createTurn({ session }), [])).toContain(`--resume=${session}`);
});

test("never turns a value into an option or puts a prompt into the arguments", () => {
  const usual = toGeminiArgs(createTurn({}), []).length;
  for (const value of hostileValues) {
    const permissions = { allowed_tools: [value], denied_tools: [value] };
    const agent = agentSchema.parse({ name: "a", type: "autonomous", model: value, system_prompt: value, permissions });
    const args = toGeminiArgs(createTurn({ agent, prompt: value, systemPrompt: value }), []);
    expect(args).toHaveLength(usual + 1);
    expect(args.at(-1)).toBe(`--model=${value}`);
  }
});

test("ignores the keys of an untrusted directory and leaves a trusted one to gemini", () => {
  const env = { GEMINI_API_KEY: "k" };
  expect(toGeminiEnv(createTurn({ env }), false)).toMatchObject({
    GEMINI_CLI_TRUST_WORKSPACE: "false",
    GEMINI_CLI_NO_RELAUNCH: "1",
    GEMINI_API_KEY: "k",
    GOOGLE_API_KEY: "",
    GOOGLE_CLOUD_PROJECT: "",
    GOOGLE_CLOUD_LOCATION: "",
  });
  const agent = agentSchema.parse({ name: "a", type: "autonomous", trust_project_settings: true });
  const trusted = toGeminiEnv(createTurn({ agent, env }), false);
  expect(trusted["GEMINI_CLI_TRUST_WORKSPACE"]).toBe("true");
  expect(trusted).not.toHaveProperty("GOOGLE_API_KEY");
  expect(toGeminiEnv(createTurn({ env: { GEMINI_CLI_HOME: "/other" } }), true)["GEMINI_CLI_HOME"]).toBe("/home/dev");
});

test("allows in each mode what its name says", () => {
  expect(toGeminiPolicy("default", {}).trim()).toBe("");
  expect(toGeminiPolicy("plan", { allowed_tools: ["write_file"] }).trim()).toBe("");
  expect(toGeminiPolicy("acceptEdits", {})).toContain('toolName = ["write_file", "replace"]\ndecision = "allow"');
  expect(toGeminiPolicy("acceptEdits", {})).not.toContain("run_shell_command");
  expect(toGeminiPolicy("bypassPermissions", {})).toContain('toolName = "*"\ndecision = "allow"');
});

test("allows and denies tools by name and command prefix, with denials first", () => {
  const policy = toGeminiPolicy("default", {
    allowed_tools: ["run_shell_command(git status)"],
    denied_tools: ["web_fetch"],
  });
  expect(policy).toContain(
    'toolName = "run_shell_command"\ncommandPrefix = "git status"\ndecision = "allow"\npriority = 600',
  );
  expect(policy).toContain('toolName = "web_fetch"\ndecision = "deny"\npriority = 900');
});

test("quotes any tool name as one string", () => {
  const policy = toGeminiPolicy("default", { denied_tools: ['x"\ndecision = "allow"\n[[rule]]'] });
  expect(policy.split("\n").filter((line) => line.startsWith("decision"))).toEqual(['decision = "deny"']);
  expect(policy.split("\n").filter((line) => line === "[[rule]]")).toHaveLength(1);
});
