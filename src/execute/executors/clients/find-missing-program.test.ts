import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findMissingProgram } from "./find-missing-program.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-programs-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const install = (name: string): string => {
  writeFileSync(join(directory, name), "#!/bin/sh\n", { mode: 0o755 });
  return join(directory, name);
};

test("reports a missing client with what to do", () => {
  expect(findMissingProgram("claude", {}, { PATH: directory })).toEqual({
    message: "claude is missing on this runner: claude (on PATH) was not found",
    next: expect.stringContaining("CLAUDE_BIN") as string,
  });
});

test("finds a client by the profile first, then by its variable, then on PATH", () => {
  const elsewhere = install("other-claude");
  expect(findMissingProgram("claude", {}, { PATH: "/nowhere", CLAUDE_BIN: elsewhere })).toBeNull();
  expect(
    findMissingProgram("claude", { bin: elsewhere }, { PATH: "/nowhere", CLAUDE_BIN: "/nowhere/claude" }),
  ).toBeNull();
  expect(
    findMissingProgram("claude", { bin: "/nowhere/claude" }, { PATH: directory, CLAUDE_BIN: elsewhere }),
  ).toMatchObject({
    message: expect.stringContaining("/nowhere/claude (the profile's bin)") as string,
  });
  install("claude");
  expect(findMissingProgram("claude", {}, { PATH: directory })).toBeNull();
});

test("needs the engine of code-review, or any engine if the run may choose", () => {
  expect(findMissingProgram("code-review", {}, { PATH: directory })).toMatchObject({
    message: expect.stringContaining("claude, codex, gemini") as string,
  });
  install("gemini");
  expect(findMissingProgram("code-review", {}, { PATH: directory })).toBeNull();
  expect(findMissingProgram("code-review", { engine: "gemini" }, { PATH: directory })).toBeNull();
  expect(findMissingProgram("code-review", { engine: "codex" }, { PATH: directory })).not.toBeNull();
});

test("needs no program for other executors", () => {
  expect(findMissingProgram("procedural", {}, { PATH: "/nowhere" })).toBeNull();
});
