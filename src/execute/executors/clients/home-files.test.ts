import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { directoriesOfEachTest } from "../../../../test/fixtures/execute/directories.ts";
import { copyHomeFiles, hasOwnHome, readHomeFiles, openSubdirectory } from "./home-files.ts";

const at = directoriesOfEachTest("theirs/.codex", "ours");
beforeEach(() => writeFileSync(at("theirs", ".codex", "auth.json"), "secret", { mode: 0o600 }));

const copy = (...names: string[]) => copyHomeFiles(at("theirs"), at("ours"), names);
const copied = () => at("ours", ".codex", "auth.json");

test("copies existing files with their mode and skips missing ones", async () => {
  await copy(".codex/auth.json", ".codex/none.toml");
  expect(readFileSync(copied(), "utf8")).toBe("secret");
  expect(statSync(copied()).mode & 0o777).toBe(0o600);
  expect(existsSync(at("ours", ".codex", "none.toml"))).toBe(false);
});

test("keeps a file that the session has changed", async () => {
  await copy(".codex/auth.json");
  writeFileSync(copied(), "refreshed");
  await copy(".codex/auth.json");
  expect(readFileSync(copied(), "utf8")).toBe("refreshed");
});

test("does not write through a link in the session's HOME", async () => {
  mkdirSync(at("ours", ".codex"));
  symlinkSync(at("elsewhere"), copied());
  await copy(".codex/auth.json");
  expect(existsSync(at("elsewhere"))).toBe(false);
});

test("copies nothing through a linked directory at any depth", async () => {
  symlinkSync(at("outside"), at("ours", ".codex"));
  await expect(copy(".codex/auth.json")).rejects.toThrow(/is a link/);
  mkdirSync(at("theirs", "a", "b"), { recursive: true });
  mkdirSync(at("ours", "a"));
  writeFileSync(at("theirs", "a", "b", "c"), "secret");
  symlinkSync(at("outside"), at("ours", "a", "b"));
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
  symlinkSync(at("theirs"), at("link"));
  const env = { HOME: at("theirs") };
  expect(await hasOwnHome({ env, homeDir: at("link") })).toBe(false);
  expect(await hasOwnHome({ env, homeDir: at("ours") })).toBe(true);
});

test("refuses a client's directory that is a link", async () => {
  const ours = at("ours");
  expect(await openSubdirectory(ours, ".gemini")).toBe(join(ours, ".gemini"));
  symlinkSync(at("theirs"), join(ours, ".codex"));
  await expect(openSubdirectory(ours, ".codex")).rejects.toThrow(/is a link/);
});
