#!/usr/bin/env node
// git-summary.mjs --since DAY [--repository DIRECTORY]: prints commits, authors and changed lines as JSON.
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { since: { type: "string" }, repository: { type: "string", default: "." } } });
if (!/^\d{4}-\d{2}-\d{2}$/.test(values.since ?? "")) fail("--since must be a day such as 2025-01-31");
const repository = resolve(values.repository);

const repositoryRoot = git("rev-parse", "--show-toplevel");
if (repositoryRoot.status !== 0) fail(`${repository} is not in a git repository`);
const branch = git("symbolic-ref", "--quiet", "--short", "HEAD").stdout.trim() || null;
const hasCommit = git("rev-parse", "--verify", "--quiet", "HEAD").status === 0;
// These options keep the repository's own settings from starting programs.
const log = hasCommit
  ? git(
      "log",
      "--no-show-signature",
      "--no-ext-diff",
      "--no-textconv",
      "--no-renames",
      `--since=${values.since}T00:00:00`,
      "--numstat",
      "-z",
      "--format=%x01%H%x02%cI%x02%aN%x02%s%x02",
    )
  : { status: 0, stdout: "" };
if (log.status !== 0) fail(log.stderr.trim());
process.stdout.write(`${JSON.stringify(summarize(log.stdout))}\n`);

function summarize(text) {
  const authors = new Map();
  const files = new Set();
  let insertions = 0;
  let deletions = 0;
  let latest = null;
  const commits = text.split("\x01").slice(1);
  for (const commit of commits) {
    const [sha, date, name, subject, changes] = commit.split("\x02");
    latest ??= { sha, date, subject };
    authors.set(name, (authors.get(name) ?? 0) + 1);
    for (const [, added, removed, path] of changes.matchAll(/(\d+|-)\t(\d+|-)\t([^\0]+)\0/g)) {
      files.add(path);
      insertions += Number(added) || 0; // A binary file has dashes.
      deletions += Number(removed) || 0;
    }
  }
  return {
    repository: repositoryRoot.stdout.trim(),
    branch,
    since: values.since,
    commits: commits.length,
    insertions,
    deletions,
    files_changed: files.size,
    authors: [...authors].map(([name, count]) => ({ name, commits: count })).sort((a, b) => b.commits - a.commits),
    latest,
  };
}

function git(...args) {
  const result = spawnSync("git", ["-C", repository, ...args], { encoding: "utf8", maxBuffer: 256 * 1024 * 1024 });
  if (result.error) fail(`git cannot be started: ${result.error.message}`);
  return result;
}

function fail(why) {
  process.stderr.write(`Error: ${why}\n`);
  process.exit(1);
}
