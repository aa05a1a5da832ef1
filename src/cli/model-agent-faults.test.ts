import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadAgentFiles } from "../define/load-agents.ts";
import { findProfiles } from "../define/profiles.ts";
import { findModelAgentFaults, findModelProfileFaults } from "./model-agent-faults.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-model-agents-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const checks = { checkSchema: async () => ({ faults: [] }), checkAgent: findModelAgentFaults };

/** Checks a Markdown agent with this front matter and with the script `s.yaml` next to it. */
async function check(frontMatter: string, script = "turns: [{ text: hi }]\n") {
  writeFileSync(join(directory, "s.yaml"), script);
  writeFileSync(join(directory, "a.md"), `---\n${frontMatter}\n---\n# A\nx\n`);
  const { agents, faults } = await loadAgentFiles([join(directory, "a.md")], checks);
  const descriptions = faults.map(
    ({ file, line, message }) => `${file?.slice(directory.length + 1)}:${line}: ${message}`,
  );
  return { agent: agents[0]?.agent, faults: descriptions, codes: faults.map(({ code }) => code) };
}

test("reports an unknown provider with its line and a suggestion", async () => {
  expect(await check("tags: [x]\nprovider: antropic")).toMatchObject({
    faults: ["a.md:3: unknown provider antropic. Did you mean anthropic?"],
    codes: ["DROVER-LLM-001"],
  });
  for (const frontMatter of ["provider: anthropic", "provider: ${PROVIDER}", "provider: own\nexecutor: own"])
    expect((await check(frontMatter)).faults).toEqual([]);
});

test("rejects the system prompt preset of Claude Code for every executor except claude-sdk", async () => {
  const preset = "system_prompt: { preset: claude_code, append: Be brief. }";
  const load = async (executor: string) => {
    const file = join(directory, "p.yaml");
    writeFileSync(file, `name: p\ntype: autonomous\nexecutor: ${executor}\n${preset}\n`);
    return (await loadAgentFiles([file], checks)).faults;
  };
  expect(await load("claude-sdk")).toEqual([]);
  for (const executor of ["model", "codex"])
    expect(await load(executor)).toMatchObject([{ code: "DROVER-AGT-004", line: 4, path: "system_prompt" }]);
});

test("resolves the script relative to the agent's file", async () => {
  expect((await check("provider: scripted\nscript: s.yaml")).agent?.script).toBe(join(directory, "s.yaml"));
  expect(await check("provider: scripted\nscript: none.yaml")).toMatchObject({
    faults: [`a.md:3: the script cannot be read (ENOENT): ${join(directory, "none.yaml")}`],
    codes: ["DROVER-LLM-004"],
  });
});

test.each([
  ["an object with an unknown key", "- txt: hi", ["s.yaml:3: unknown key turns.1.txt. Did you mean text?"]],
  ["a plain string", "- hi", ["s.yaml:3: turns.1 has a wrong value: Invalid input: expected object, received string"]],
  [
    "an object without text, tools and error",
    "- usage: { input_tokens: 1, output_tokens: 1 }",
    ["s.yaml:3: turns.1 has a wrong value: a turn needs text, tools or error"],
  ],
  [
    "an error with other keys",
    "- text: hi\n    error: { kind: network, message: x }",
    ["s.yaml:3: turns.1 has a wrong value: a turn with `error` cannot have other keys"],
  ],
  [
    "a tool call with a misspelt key",
    "- text: hi\n    tools:\n      - { nam: file.read }",
    ["s.yaml:5: turns.1.tools.0.name is missing", "s.yaml:5: unknown key turns.1.tools.0.nam. Did you mean name?"],
  ],
  [
    "not valid YAML",
    "- text: [hi",
    [
      "s.yaml:4: the script is not valid YAML or JSON: Flow sequence in block collection must be sufficiently indented and end with a ]",
    ],
  ],
])("reports a script turn that is %s, with its line", async (_what, turn, faults) => {
  const result = await check("provider: scripted\nscript: s.yaml", `turns:\n  - text: one\n  ${turn}\n`);
  expect(result.faults).toEqual(faults);
  expect(new Set(result.codes)).toEqual(new Set(["DROVER-LLM-004"]));
});

test("checks the provider and script of a profile in the same way", async () => {
  mkdirSync(join(directory, "profiles"));
  const config = { provider: "scriptd", script: "none.yaml" };
  writeFileSync(join(directory, "profiles", "m.json"), JSON.stringify({ type: "model", config }, null, 1));
  const { profiles } = findProfiles([join(directory, "profiles")], { builtIn: ["model"], hasCommand: () => true });
  expect(await findModelProfileFaults(profiles[0]!)).toMatchObject([
    { code: "DROVER-LLM-001", line: 4, message: expect.stringContaining("Did you mean scripted?") },
    { code: "DROVER-LLM-004", line: 5, message: expect.stringContaining(join(directory, "none.yaml")) },
  ]);
});
