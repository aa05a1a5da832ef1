// `npm run check`: lint, format, types, import rules, unused code. Runs all checks and fails if any of them fails.
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureInstalled } from "./lib/install.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
ensureInstalled(root, "tools");
ensureInstalled(join(root, "web"), "production", "the dashboard's packages");
// Type-checking the dashboard's tests needs their packages.
ensureInstalled(join(root, "test", "browser"), "production", "the browser driver for tests");
const toBinPath = (name) => join(root, "node_modules", ".bin", name);
const checks = [
  ["types", toBinPath("tsc"), ["--noEmit", "-p", "."]],
  ["types of web", toBinPath("tsc"), ["--noEmit", "-p", "web"]],
  [
    "lint",
    toBinPath("oxlint"),
    ["--type-aware", "--deny-warnings", "src", "web", "test", "scripts", "bench", "torture"],
  ],
  ["format", toBinPath("oxfmt"), ["--check"]],
  ["import rules", process.execPath, ["scripts/check-imports.mjs"]],
  ["unused code", toBinPath("knip"), ["--no-progress"]],
];
/** Runs one check. Prints the output when the check ends, because the checks run in parallel. */
const runCheck = ([name, file, args]) =>
  new Promise((resolve) => {
    const child = spawn(file, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    const output = [];
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => output.push(chunk));
    child.once("error", (error) => output.push(Buffer.from(`${error.message}\n`)));
    child.once("close", (status) => {
      process.stderr.write(Buffer.concat(output));
      process.stderr.write(`${status === 0 ? "ok    " : "FAILED"} ${name}\n`);
      resolve(status === 0);
    });
  });
const results = await Promise.all(checks.map(runCheck));
process.exitCode = results.every(Boolean) ? 0 : 1;
