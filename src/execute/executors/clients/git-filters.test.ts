import { execFileSync, spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { toGitVariables, disableRepositoryFilters } from "./git-filters.ts";

let directory: string;
let repository: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-git-filters-"));
  repository = join(directory, "repository");
  execFileSync("git", ["init", "--quiet", repository]);
  writeFileSync(join(repository, "secret.txt"), "plain\n");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const env = () => ({ PATH: process.env["PATH"], HOME: directory });
const config = (key: string, value: string) =>
  execFileSync("git", ["-C", repository, "config", key, value], { env: env() });
const attribute = (filter: string) => writeFileSync(join(repository, ".gitattributes"), `*.txt filter=${filter}\n`);
const trap = () => join(directory, "trap");

const disable = (workDir = repository) =>
  disableRepositoryFilters({
    workDir,
    outputLines([program, ...args]) {
      const printed = execFileSync(program, args, { cwd: workDir, env: env(), encoding: "utf8" });
      return Promise.resolve(printed.split("\n").filter((line) => line !== ""));
    },
  });

/** Adds the file with each set of variables alone, because some programs drop one or the other. */
async function addFile(): Promise<{ status: number | null; stderr: string }[]> {
  const { GIT_CONFIG_PARAMETERS, ...numbered } = toGitVariables(await disable());
  return [numbered, { GIT_CONFIG_PARAMETERS: GIT_CONFIG_PARAMETERS ?? "" }].map((variables) =>
    spawnSync("git", ["-C", repository, "add", "secret.txt"], { env: { ...env(), ...variables }, encoding: "utf8" }),
  );
}

test.each([null, "true", "false"])(
  "makes git refuse a file instead of adding it unfiltered (required: %s)",
  async (required) => {
    config("filter.crypt.clean", `touch ${trap()}; tr a-z b-za`);
    if (required !== null) config("filter.crypt.required", required);
    attribute("crypt");
    for (const { status, stderr } of await addFile()) {
      expect(stderr).toContain("clean filter 'crypt' failed");
      expect(status).toBe(128);
    }
    expect(existsSync(trap())).toBe(false);
    expect(execFileSync("git", ["-C", repository, "ls-files"], { encoding: "utf8" })).toBe("");
  },
);

test.each(["a=b", "it's", 'say"so"', "a.b", "UPPER", "\u2028", "cr\rcr", "$(id)", "ü"])(
  "disables a filter named %j",
  async (name) => {
    config(`filter.${name}.clean`, `touch ${trap()}; cat`);
    config(`filter.${name}.process`, `touch ${trap()}`);
    attribute(name);
    for (const { stderr } of await addFile()) expect(stderr).not.toMatch(/bogus|config/);
    expect(existsSync(trap())).toBe(false);
    expect(await disable()).toContainEqual([`filter.${name}.required`, "true"]);
  },
);

test("keeps the operator's own filters", async () => {
  writeFileSync(join(directory, ".gitconfig"), '[filter "operator"]\n\tclean = cat\n');
  expect(await disable()).toEqual([]);
  expect(toGitVariables([])).toEqual({});
});

test("finds the filters from a subdirectory, through a link and in a bare repository", async () => {
  config("filter.x.clean", "cat");
  mkdirSync(join(repository, "sub"));
  symlinkSync(join(repository, "sub"), join(directory, "link"));
  for (const path of [join(repository, "sub"), join(directory, "link"), join(repository, ".git")])
    expect(await disable(path)).toContainEqual(["filter.x.clean", ""]);
});

test("refuses a name that is not UTF-8 and more names than a variable holds", async () => {
  const file = join(repository, ".git", "config");
  appendFileSync(file, Buffer.from('[filter "x\xff"]\n\tclean = cat\n', "latin1"));
  await expect(disable()).rejects.toMatchObject({ reason: "refused" });
  writeFileSync(file, Array.from({ length: 900 }, (_, n) => `[filter "x${n}"]\n\tclean = cat\n`).join(""));
  await expect(disable()).rejects.toThrow(/too many filters/);
});
