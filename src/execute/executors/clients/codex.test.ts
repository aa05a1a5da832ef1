import { expect, test } from "vitest";
import { agentSchema } from "../../../model/agent.ts";
import { toCodexArgs } from "./codex.ts";
import { hostileValues, createTurn } from "./fixtures/turns.ts";
import { prependSystemPrompt } from "./prepend-system-prompt.ts";

const work = "/home/dev/work";

test("reads the prompt from stdin and trusts nothing in the repository", () => {
  const args = toCodexArgs(createTurn({}), work);
  expect(args).toEqual([
    "exec",
    "--json",
    "--skip-git-repo-check",
    "--config=sandbox_mode=workspace-write",
    "--config=sandbox_workspace_write.exclude_slash_tmp=true",
    '--config=projects={"/home/dev/work"={trust_level="untrusted"},"/home/dev"={trust_level="untrusted"},"/home"={trust_level="untrusted"},"/"={trust_level="untrusted"}}',
    "--config=project_doc_max_bytes=0",
    "--config=skills.include_instructions=false",
    "-",
  ]);
});

test("puts the session of resume and fork last, before the prompt", () => {
  const session = "01a1e1fc-d61e-7cb2-ae18-2d213749191e";
  expect(toCodexArgs(createTurn({ session }), work).slice(-3)).toEqual(["resume", session, "-"]);
  expect(toCodexArgs(createTurn({ session, fork: true }), work).slice(-3)).toEqual(["fork", session, "-"]);
});

test("leaves a trusted repository to codex", () => {
  const agent = agentSchema.parse({ name: "a", type: "autonomous", trust_project_settings: true });
  expect(toCodexArgs(createTurn({ agent }), work).join(" ")).not.toMatch(/projects|project_doc|skills/);
});

test.each(["default", "plan"] as const)("makes %s read-only", (mode) => {
  expect(toCodexArgs(createTurn({ mode }), work)).toContain("--config=sandbox_mode=read-only");
});

test("turns off the sandbox for bypassPermissions", () => {
  expect(toCodexArgs(createTurn({ mode: "bypassPermissions" }), work)).toContain(
    "--dangerously-bypass-approvals-and-sandbox",
  );
});

test("never turns a value into an option or puts a prompt into the arguments", () => {
  const usual = toCodexArgs(createTurn({}), work).length;
  for (const value of hostileValues) {
    const agent = agentSchema.parse({ name: "a", type: "autonomous", model: value, system_prompt: value });
    const args = toCodexArgs(createTurn({ agent, prompt: value, systemPrompt: value }), work);
    expect(args).toHaveLength(usual + 1);
    expect(args.at(-2)).toBe(`--model=${value}`);
  }
});

test("quotes a directory with quotes and control characters as one TOML string", () => {
  const args = toCodexArgs(createTurn({}), '/home/we"ird=\\dir\u007f\n');
  expect(args[5]).toContain(String.raw`projects={"/home/we\"ird=\\dir\u007f\n"={trust_level="untrusted"}`);
});

test("puts the system prompt before the first prompt only", () => {
  const turn = createTurn({ prompt: "do it", systemPrompt: "be kind" });
  expect(prependSystemPrompt(turn)).toBe("<instructions>\nbe kind\n</instructions>\n\ndo it");
  expect(prependSystemPrompt({ ...turn, session: "x" })).toBe("do it");
  expect(prependSystemPrompt({ ...turn, systemPrompt: null })).toBe("do it");
});
