import { buildSync } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { findCheckout } from "./checkout.ts";

const readRepoSha = (directory: string) => findCheckout(directory, null).repo_sha;

let top: string;
beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), "drover-git-"));
});
afterEach(() => rmSync(top, { recursive: true }));

function git(cwd: string, ...args: string[]): string {
  const child = spawnSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.invalid", ...args], {
    cwd,
    encoding: "utf8",
  });
  if (child.status !== 0) throw new Error(child.stderr);
  return child.stdout.trim();
}

it("finds the same commit as git for loose and packed refs, a detached head and a work tree", () => {
  git(top, "init", "-q");
  git(top, "commit", "-q", "--allow-empty", "-m", "one");
  expect(readRepoSha(top)).toBe(git(top, "rev-parse", "HEAD"));
  git(top, "pack-refs", "--all");
  expect(readRepoSha(top)).toBe(git(top, "rev-parse", "HEAD"));
  git(top, "checkout", "-q", "--detach");
  expect(readRepoSha(top)).toBe(git(top, "rev-parse", "HEAD"));
  git(top, "worktree", "add", "-q", "-b", "other", "tree");
  git(join(top, "tree"), "commit", "-q", "--allow-empty", "-m", "two");
  expect(readRepoSha(join(top, "tree"))).toBe(git(join(top, "tree"), "rev-parse", "HEAD"));
  expect(readRepoSha(join(top, "tree"))).not.toBe(readRepoSha(top));
  mkdirSync(join(top, "a", "b"), { recursive: true });
  expect(readRepoSha(join(top, "a", "b"))).toBe(readRepoSha(top));
});

it("finds no commit without a repository, in an empty repository and for an unknown layout", () => {
  expect(readRepoSha(top)).toBeNull();
  git(top, "init", "-q");
  expect(readRepoSha(top)).toBeNull();
  writeFileSync(join(top, ".git", "HEAD"), "ref: ../../../etc/passwd\n");
  expect(readRepoSha(top)).toBeNull();
});

it("inherits the commit within a repository and outside of any, but not from another repository, and prefers a given commit", () => {
  for (const name of ["one", "two"]) {
    git(top, "init", "-q", name);
    git(join(top, name), "commit", "-q", "--allow-empty", "-m", name);
  }
  mkdirSync(join(top, "one", "sub"));
  const env = { DROVER_REPO_SHA: "inherited", DROVER_REPO_ROOT: join(top, "one") };
  expect(findCheckout(join(top, "one", "sub"), null, env)).toEqual({
    repo_sha: "inherited",
    repo_root: join(top, "one"),
  });
  expect(findCheckout(top, null, env)).toEqual({ repo_sha: "inherited", repo_root: top });
  expect(findCheckout(join(top, "two"), null, env).repo_sha).toBe(git(join(top, "two"), "rev-parse", "HEAD"));
  expect(findCheckout(join(top, "two"), null, { DROVER_REPO_SHA: "set by hand" }).repo_sha).toBe("set by hand");
  expect(findCheckout(join(top, "two"), "given", env).repo_sha).toBe("given");
});

// Each of these used to block the process forever, and any run can create one for the next run.
it.each([".git", ".git/HEAD", ".git/commondir", ".git/packed-refs", ".git/refs/heads/main"])(
  "neither blocks on a named pipe nor reads a device in place of %s",
  (name) => {
    if (name !== ".git") mkdirSync(join(top, ".git", "refs", "heads"), { recursive: true });
    if (!/HEAD|git$/.test(name)) writeFileSync(join(top, ".git", "HEAD"), "ref: refs/heads/main\n");
    const outfile = join(top, "checkout.cjs");
    buildSync({
      entryPoints: [resolve("src/define/checkout.ts")],
      outfile,
      bundle: true,
      platform: "node",
      format: "cjs",
    });
    const script = `console.log(require(${JSON.stringify(outfile)}).findCheckout(${JSON.stringify(top)}, null).repo_sha)`;
    for (const put of [() => spawnSync("mkfifo", [join(top, name)]), () => symlinkSync("/dev/zero", join(top, name))]) {
      rmSync(join(top, name), { force: true });
      put();
      const child = spawnSync(process.execPath, ["-e", script], { encoding: "utf8", timeout: 120_000 });
      expect([child.error, child.stdout]).toEqual([undefined, "null\n"]);
    }
  },
);
