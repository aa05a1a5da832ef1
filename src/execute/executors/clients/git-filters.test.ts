import { execFileSync, spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { gitVariables, disableRepositoryFilters } from "./git-filters.ts";

let folder: string;
let repository: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "drover-git-filters-"));
  repository = join(folder, "repository");
  execFileSync("git", ["init", "--quiet", repository]);
  writeFileSync(join(repository, "secret.txt"), "plain\n");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const env = () => ({ PATH: process.env["PATH"], HOME: folder });
const config = (key: string, value: string) =>
  execFileSync("git", ["-C", repository, "config", key, value], { env: env() });
const attribute = (filter: string) => writeFileSync(join(repository, ".gitattributes"), `*.txt filter=${filter}\n`);
const trap = () => join(folder, "trap");

const off = (workDir = repository) =>
  disableRepositoryFilters({
    workDir,
    outputLines([program, ...words]) {
      const printed = execFileSync(program, words, { cwd: workDir, env: env(), encoding: "utf8" });
      return Promise.resolve(printed.split("\n").filter((line) => line !== ""));
    },
  });

/** Each way by itself, as programs in between drop the one or the other. */
async function added(): Promise<{ status: number | null; stderr: string }[]> {
  const { GIT_CONFIG_PARAMETERS, ...numbered } = gitVariables(await off());
  return [numbered, { GIT_CONFIG_PARAMETERS: GIT_CONFIG_PARAMETERS ?? "" }].map((variables) =>
    spawnSync("git", ["-C", repository, "add", "secret.txt"], { env: { ...env(), ...variables }, encoding: "utf8" }),
  );
}

test.each([null, "true", "false"])(
  "a filter that loses its command lets nothing through as it is (required: %s)",
  async (required) => {
    config("filter.crypt.clean", `touch ${trap()}; tr a-z b-za`);
    if (required !== null) config("filter.crypt.required", required);
    attribute("crypt");
    for (const { status, stderr } of await added()) {
      expect(stderr).toContain("clean filter 'crypt' failed");
      expect(status).toBe(128);
    }
    expect(existsSync(trap())).toBe(false);
    expect(execFileSync("git", ["-C", repository, "ls-files"], { encoding: "utf8" })).toBe("");
  },
);

test.each(["a=b", "it's", 'say"so"', "a.b", "UPPER", "\u2028", "cr\rcr", "$(id)", "ü"])(
  "the name %j is one name",
  async (name) => {
    config(`filter.${name}.clean`, `touch ${trap()}; cat`);
    config(`filter.${name}.process`, `touch ${trap()}`);
    attribute(name);
    for (const { stderr } of await added()) expect(stderr).not.toMatch(/bogus|config/);
    expect(existsSync(trap())).toBe(false);
    expect(await off()).toContainEqual([`filter.${name}.required`, "true"]);
  },
);

test("a filter of the operator's own stays", async () => {
  writeFileSync(join(folder, ".gitconfig"), '[filter "theirs"]\n\tclean = cat\n');
  expect(await off()).toEqual([]);
  expect(gitVariables([])).toEqual({});
});

test("it is found from a folder inside, through a link, and in a repository without .git", async () => {
  config("filter.x.clean", "cat");
  mkdirSync(join(repository, "sub"));
  symlinkSync(join(repository, "sub"), join(folder, "link"));
  for (const place of [join(repository, "sub"), join(folder, "link"), join(repository, ".git")])
    expect(await off(place)).toContainEqual(["filter.x.clean", ""]);
});

test("a name that is not UTF-8, and more names than variables hold, are refused", async () => {
  const file = join(repository, ".git", "config");
  appendFileSync(file, Buffer.from('[filter "x\xff"]\n\tclean = cat\n', "latin1"));
  await expect(off()).rejects.toMatchObject({ reason: "refused" });
  writeFileSync(file, Array.from({ length: 900 }, (_, n) => `[filter "x${n}"]\n\tclean = cat\n`).join(""));
  await expect(off()).rejects.toThrow(/too many filters/);
});
