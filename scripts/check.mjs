// `npm run check`: lint, format, types, import rules, unused code. All of them run; any of them fails it.
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureInstalled } from "./lib/install.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
ensureInstalled(root, "tools");
const bin = (name) => join(root, "node_modules", ".bin", name);
const checks = [
  ["types", bin("tsc"), ["--noEmit", "-p", "."]],
  ["lint", bin("oxlint"), ["--type-aware", "--deny-warnings", "src", "test", "scripts", "bench", "torture"]],
  ["format", bin("oxfmt"), ["--check"]],
  ["import rules", process.execPath, ["scripts/check-imports.mjs"]],
  ["unused code", bin("knip"), ["--no-progress"]],
];
const failed = checks.filter(([name, file, args]) => {
  const { status, error } = spawnSync(file, args, { cwd: root, stdio: ["ignore", 2, 2] });
  process.stderr.write(`${status === 0 ? "ok    " : "FAILED"} ${name}${error ? ` (${error.message})` : ""}\n`);
  return status !== 0;
});
process.exit(failed.length === 0 ? 0 : 1);
