import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { missingProgram } from "./missing-program.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "drover-programs-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const install = (name: string): string => {
  writeFileSync(join(folder, name), "#!/bin/sh\n", { mode: 0o755 });
  return join(folder, name);
};

test("a client that is not there is missing, with what to do", () => {
  expect(missingProgram("claude", {}, { PATH: folder })).toEqual({
    message: "claude is missing on this runner: claude (along PATH) was not found",
    next: expect.stringContaining("CLAUDE_BIN") as string,
  });
});

test("it is found on PATH, by its variable, and by the profile, which comes first", () => {
  const elsewhere = install("other-claude");
  expect(missingProgram("claude", {}, { PATH: "/nowhere", CLAUDE_BIN: elsewhere })).toBeNull();
  expect(missingProgram("claude", { bin: elsewhere }, { PATH: "/nowhere", CLAUDE_BIN: "/nowhere/claude" })).toBeNull();
  expect(missingProgram("claude", { bin: "/nowhere/claude" }, { PATH: folder, CLAUDE_BIN: elsewhere })).toMatchObject({
    message: expect.stringContaining("/nowhere/claude (the profile's bin)") as string,
  });
  install("claude");
  expect(missingProgram("claude", {}, { PATH: folder })).toBeNull();
});

test("code-review needs its engine, or any where the run may choose", () => {
  expect(missingProgram("code-review", {}, { PATH: folder })).toMatchObject({
    message: expect.stringContaining("claude, codex, gemini") as string,
  });
  install("gemini");
  expect(missingProgram("code-review", {}, { PATH: folder })).toBeNull();
  expect(missingProgram("code-review", { engine: "gemini" }, { PATH: folder })).toBeNull();
  expect(missingProgram("code-review", { engine: "codex" }, { PATH: folder })).not.toBeNull();
});

test("other executors need nothing that this knows of", () => {
  expect(missingProgram("procedural", {}, { PATH: "/nowhere" })).toBeNull();
});
