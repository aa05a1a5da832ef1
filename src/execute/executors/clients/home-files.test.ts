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
import { copyHomeFiles, hasOwnHome, homeFilesOf, openSubdirectory } from "./home-files.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "drover-home-files-"));
  for (const name of ["theirs", "ours"]) mkdirSync(join(folder, name));
  mkdirSync(join(folder, "theirs", ".codex"));
  writeFileSync(join(folder, "theirs", ".codex", "auth.json"), "secret", { mode: 0o600 });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const copy = (...names: string[]) => copyHomeFiles(join(folder, "theirs"), join(folder, "ours"), names);
const copied = () => join(folder, "ours", ".codex", "auth.json");

test("what is there is copied with its mode, what is not is left out", async () => {
  await copy(".codex/auth.json", ".codex/none.toml");
  expect(readFileSync(copied(), "utf8")).toBe("secret");
  expect(statSync(copied()).mode & 0o777).toBe(0o600);
  expect(existsSync(join(folder, "ours", ".codex", "none.toml"))).toBe(false);
});

test("what a session has made of a file stays", async () => {
  await copy(".codex/auth.json");
  writeFileSync(copied(), "refreshed");
  await copy(".codex/auth.json");
  expect(readFileSync(copied(), "utf8")).toBe("refreshed");
});

test("a link in the session's HOME is not written through", async () => {
  mkdirSync(join(folder, "ours", ".codex"));
  symlinkSync(join(folder, "elsewhere"), copied());
  await copy(".codex/auth.json");
  expect(existsSync(join(folder, "elsewhere"))).toBe(false);
});

test("nothing goes through a link that stands for a folder, however deep", async () => {
  mkdirSync(join(folder, "outside"));
  symlinkSync(join(folder, "outside"), join(folder, "ours", ".codex"));
  await expect(copy(".codex/auth.json")).rejects.toThrow(/is a link/);
  mkdirSync(join(folder, "theirs", "a", "b"), { recursive: true });
  mkdirSync(join(folder, "ours", "a"));
  writeFileSync(join(folder, "theirs", "a", "b", "c"), "secret");
  symlinkSync(join(folder, "outside"), join(folder, "ours", "a", "b"));
  await expect(copy("a/b/c")).rejects.toThrow(/is a link/);
  expect(readdirSync(join(folder, "outside"))).toEqual([]);
});

test("the profile names other files, and only below HOME", () => {
  expect(homeFilesOf({}, ["a"])).toEqual(["a"]);
  expect(homeFilesOf({ home_files: [".x/y"] }, ["a"])).toEqual([".x/y"]);
  for (const bad of ["/etc/passwd", "../x", "a/../../x", "", 7])
    expect(() => homeFilesOf({ home_files: [bad] }, [])).toThrow(/home_files/);
  expect(() => homeFilesOf({ home_files: ".x" }, [])).toThrow(/home_files/);
});

test("the operator's HOME is known by what it really is", async () => {
  symlinkSync(join(folder, "theirs"), join(folder, "link"));
  const env = { HOME: join(folder, "theirs") };
  expect(await hasOwnHome({ env, homeDir: join(folder, "link") })).toBe(false);
  expect(await hasOwnHome({ env, homeDir: join(folder, "ours") })).toBe(true);
});

test("a folder of the client's that is a link is refused", async () => {
  const ours = join(folder, "ours");
  expect(await openSubdirectory(ours, ".gemini")).toBe(join(ours, ".gemini"));
  symlinkSync(join(folder, "theirs"), join(ours, ".codex"));
  await expect(openSubdirectory(ours, ".codex")).rejects.toThrow(/is a link/);
});
