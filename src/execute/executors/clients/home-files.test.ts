import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { createTestDirectories } from "../../../../test/fixtures/execute/directories.ts";
import { copyHomeFiles, hasOwnHome, readHomeFiles, createSubdirectory } from "./home-files.ts";

const at = createTestDirectories("operator-home/.codex", "session-home");
beforeEach(() => writeFileSync(at("operator-home", ".codex", "auth.json"), "secret", { mode: 0o600 }));

const copy = (...names: string[]) => copyHomeFiles(at("operator-home"), at("session-home"), names);
const getCopyPath = () => at("session-home", ".codex", "auth.json");

test("copies existing files with their mode and skips missing ones", async () => {
  await copy(".codex/auth.json", ".codex/none.toml");
  expect(readFileSync(getCopyPath(), "utf8")).toBe("secret");
  expect(statSync(getCopyPath()).mode & 0o777).toBe(0o600);
  expect(existsSync(at("session-home", ".codex", "none.toml"))).toBe(false);
});

test("keeps a file that the session has changed", async () => {
  await copy(".codex/auth.json");
  writeFileSync(getCopyPath(), "refreshed");
  await copy(".codex/auth.json");
  expect(readFileSync(getCopyPath(), "utf8")).toBe("refreshed");
});

test("does not write through a link in the session's HOME", async () => {
  mkdirSync(at("session-home", ".codex"));
  symlinkSync(at("elsewhere"), getCopyPath());
  await copy(".codex/auth.json");
  expect(existsSync(at("elsewhere"))).toBe(false);
});

test("copies nothing through a linked directory at any depth", async () => {
  symlinkSync(at("outside"), at("session-home", ".codex"));
  await expect(copy(".codex/auth.json")).rejects.toThrow(/is a link/);
  mkdirSync(at("operator-home", "a", "b"), { recursive: true });
  mkdirSync(at("session-home", "a"));
  writeFileSync(at("operator-home", "a", "b", "c"), "secret");
  symlinkSync(at("outside"), at("session-home", "a", "b"));
  await expect(copy("a/b/c")).rejects.toThrow(/is a link/);
  expect(readdirSync(at("outside"))).toEqual(["kept"]);
});

test("accepts other files in the profile, only below HOME", () => {
  expect(readHomeFiles({}, ["a"])).toEqual(["a"]);
  expect(readHomeFiles({ home_files: [".x/y"] }, ["a"])).toEqual([".x/y"]);
  for (const bad of ["/etc/passwd", "../x", "a/../../x", "", 7])
    expect(() => readHomeFiles({ home_files: [bad] }, [])).toThrow(/home_files/);
  expect(() => readHomeFiles({ home_files: ".x" }, [])).toThrow(/home_files/);
});

test("recognizes the operator's HOME through a link", async () => {
  symlinkSync(at("operator-home"), at("link"));
  const env = { HOME: at("operator-home") };
  expect(await hasOwnHome({ env, homeDir: at("link") })).toBe(false);
  expect(await hasOwnHome({ env, homeDir: at("session-home") })).toBe(true);
});

test("refuses a client's directory that is a link", async () => {
  const sessionHome = at("session-home");
  expect(await createSubdirectory(sessionHome, ".gemini")).toBe(join(sessionHome, ".gemini"));
  symlinkSync(at("operator-home"), join(sessionHome, ".codex"));
  await expect(createSubdirectory(sessionHome, ".codex")).rejects.toThrow(/is a link/);
});
