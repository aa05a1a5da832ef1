import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { readRepoSha } from "./repo-sha.ts";

let top: string;
beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), "drover-git-"));
});
afterEach(() => rmSync(top, { recursive: true }));

function git(cwd: string, ...args: string[]): string {
  const done = spawnSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.invalid", ...args], {
    cwd,
    encoding: "utf8",
  });
  if (done.status !== 0) throw new Error(done.stderr);
  return done.stdout.trim();
}

it("is what git says, with loose and packed refs, detached, and in a work tree", () => {
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

it("is null without a repository, without a commit, and in a layout it does not understand", () => {
  expect(readRepoSha(top)).toBeNull();
  git(top, "init", "-q");
  expect(readRepoSha(top)).toBeNull();
  writeFileSync(join(top, ".git", "HEAD"), "ref: ../../../etc/passwd\n");
  expect(readRepoSha(top)).toBeNull();
});
