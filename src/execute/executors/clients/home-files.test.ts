import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  existsSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { copyHomeFiles, hasOwnHome, readHomeFiles, openSubdirectory } from "./home-files.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-home-files-"));
  for (const name of ["theirs", "ours"]) mkdirSync(join(directory, name));
  mkdirSync(join(directory, "theirs", ".codex"));
  writeFileSync(join(directory, "theirs", ".codex", "auth.json"), "secret", { mode: 0o600 });
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const copy = (...names: string[]) => copyHomeFiles(join(directory, "theirs"), join(directory, "ours"), names);
const copied = () => join(directory, "ours", ".codex", "auth.json");

test("copies existing files with their mode and skips missing ones", async () => {
  await copy(".codex/auth.json", ".codex/none.toml");
  expect(readFileSync(copied(), "utf8")).toBe("secret");
  expect(statSync(copied()).mode & 0o777).toBe(0o600);
  expect(existsSync(join(directory, "ours", ".codex", "none.toml"))).toBe(false);
});

test("keeps a file that the session has changed", async () => {
  await copy(".codex/auth.json");
  writeFileSync(copied(), "refreshed");
  await copy(".codex/auth.json");
  expect(readFileSync(copied(), "utf8")).toBe("refreshed");
});

test("does not write through a link in the session's HOME", async () => {
  mkdirSync(join(directory, "ours", ".codex"));
  symlinkSync(join(directory, "elsewhere"), copied());
  await copy(".codex/auth.json");
  expect(existsSync(join(directory, "elsewhere"))).toBe(false);
});

test("copies nothing through a linked directory at any depth", async () => {
  mkdirSync(join(directory, "outside"));
  symlinkSync(join(directory, "outside"), join(directory, "ours", ".codex"));
  await expect(copy(".codex/auth.json")).rejects.toThrow(/is a link/);
  mkdirSync(join(directory, "theirs", "a", "b"), { recursive: true });
  mkdirSync(join(directory, "ours", "a"));
  writeFileSync(join(directory, "theirs", "a", "b", "c"), "secret");
  symlinkSync(join(directory, "outside"), join(directory, "ours", "a", "b"));
  await expect(copy("a/b/c")).rejects.toThrow(/is a link/);
  expect(readdirSync(join(directory, "outside"))).toEqual([]);
});

test("accepts other files in the profile, only below HOME", () => {
  expect(readHomeFiles({}, ["a"])).toEqual(["a"]);
  expect(readHomeFiles({ home_files: [".x/y"] }, ["a"])).toEqual([".x/y"]);
  for (const bad of ["/etc/passwd", "../x", "a/../../x", "", 7])
    expect(() => readHomeFiles({ home_files: [bad] }, [])).toThrow(/home_files/);
  expect(() => readHomeFiles({ home_files: ".x" }, [])).toThrow(/home_files/);
});

test("recognizes the operator's HOME through a link", async () => {
  symlinkSync(join(directory, "theirs"), join(directory, "link"));
  const env = { HOME: join(directory, "theirs") };
  expect(await hasOwnHome({ env, homeDir: join(directory, "link") })).toBe(false);
  expect(await hasOwnHome({ env, homeDir: join(directory, "ours") })).toBe(true);
});

test("refuses a client's directory that is a link", async () => {
  const sessionHome = join(directory, "ours");
  expect(await openSubdirectory(sessionHome, ".gemini")).toBe(join(sessionHome, ".gemini"));
  symlinkSync(join(directory, "theirs"), join(sessionHome, ".codex"));
  await expect(openSubdirectory(sessionHome, ".codex")).rejects.toThrow(/is a link/);
});
