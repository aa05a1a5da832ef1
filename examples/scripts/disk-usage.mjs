#!/usr/bin/env node
// disk-usage.mjs [--path DIRECTORY] [--top N]: prints the size of a directory as JSON. Symbolic links are not
// followed, and a file with several hard links is counted once.
import { lstatSync, opendirSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: { path: { type: "string", default: "." }, top: { type: "string", default: "10" } },
});
const root = resolve(values.path);
const top = Number(values.top);
if (!Number.isInteger(top) || top < 0) fail(`--top must be a whole number, not ${values.top}`);
if (!lstatSync(root, { throwIfNoEntry: false })?.isDirectory()) fail(`${root} is not a directory`);

const report = { path: root, total_bytes: 0, files: 0, folders: 0, largest: [], unreadable: 0 };
const counted = new Set();
const pending = [root];
for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) visit(directory);
report.largest = report.largest.map(({ path, bytes }) => ({ path: relative(root, path), bytes }));
process.stdout.write(`${JSON.stringify(report)}\n`);

function visit(path) {
  try {
    const directory = opendirSync(path);
    try {
      for (let entry = directory.readSync(); entry !== null; entry = directory.readSync())
        count(join(path, entry.name), entry);
    } finally {
      directory.closeSync();
    }
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    report.unreadable++;
  }
}

function count(path, entry) {
  if (entry.isDirectory()) {
    report.folders++;
    pending.push(path);
    return;
  }
  if (!entry.isFile()) return;
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat) return; // The file was removed in the meantime.
  if (stat.nlink > 1 && counted.has(`${stat.dev}:${stat.ino}`)) return;
  if (stat.nlink > 1) counted.add(`${stat.dev}:${stat.ino}`);
  report.files++;
  report.total_bytes += stat.size;
  const index = report.largest.findIndex(({ bytes }) => bytes < stat.size);
  report.largest.splice(index < 0 ? report.largest.length : index, 0, { path, bytes: stat.size });
  report.largest.length = Math.min(report.largest.length, top);
}

function fail(why) {
  process.stderr.write(`Error: ${why}\n`);
  process.exit(1);
}
