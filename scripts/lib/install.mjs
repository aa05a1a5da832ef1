// Installs what package-lock.json names, once: `npm start` needs only the product, `npm test` also the tools.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * @param {string} root @param {"product" | "tools"} asked @param {string} [what] as people are told
 * @param {() => string | null} [lacks] what is still missing, for people: npm leaves optional packages out without a word
 */
export function ensureInstalled(root, asked, what, lacks = () => null) {
  const stampFile = join(root, "node_modules", ".drover-installed");
  const lock = createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
  const have = existsSync(stampFile) ? readFileSync(stampFile, "utf8") : "";
  // tools that are there stay: installing the product alone would take them away
  const want = have.endsWith(" tools") ? "tools" : asked;
  if ((have === `${lock} tools` || (want === "product" && have === `${lock} product`)) && lacks() === null) return;
  const named = what ?? (want === "product" ? "Drover's packages" : "packages and test tools");
  process.stderr.write(`Installing ${named}...\n`);
  // not `npm ci`: it refuses a lockfile that lacks another platform's optional binaries
  // No package runs code when it is installed. .npmrc does not say so: `npm pack` would skip our own build.
  const args = ["install", "--ignore-scripts", "--no-save", "--no-audit", "--no-fund", "--include=optional"];
  if (want === "product") args.push("--omit=dev");
  // `npm run` hands down what the root's .npmrc says, and that would go before the folder's own
  const { npm_config_engine_strict: _, ...env } = process.env;
  run("npm", args, root, env);
  const missing = lacks();
  if (missing !== null) {
    process.stderr.write(`${missing}\n`);
    process.exit(1);
  }
  writeFileSync(stampFile, `${lock} ${want}`);
}

/** Runs a program with its output on stderr and ends this process when it fails. */
export function run(file, args, cwd, env = process.env) {
  const done = spawnSync(file, args, { cwd, env, stdio: ["ignore", 2, 2] });
  if (done.error) {
    process.stderr.write(`Cannot run ${file}: ${done.error.message}\n`);
    process.exit(1);
  }
  if (done.status !== 0) {
    process.stderr.write(`${file} ${args.join(" ")} failed (${done.signal ?? done.status}).\n`);
    process.exit(done.status || 1);
  }
}
