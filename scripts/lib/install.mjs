// Installs the packages of package-lock.json unless they are installed already. `npm start` needs only the product's
// packages, `npm test` also the tools.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * @param {string} root @param {"product" | "tools"} asked @param {string} [what] shown in the progress message
 * @param {() => string | null} [lacks] returns an error message if something is still missing afterwards: npm skips
 * optional packages silently
 */
export function ensureInstalled(root, asked, what, lacks = () => null) {
  const stampFile = join(root, "node_modules", ".drover-installed");
  const lock = createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
  const have = existsSync(stampFile) ? readFileSync(stampFile, "utf8") : "";
  // Keep installed tools: installing only the product would remove them.
  const want = have.endsWith(" tools") ? "tools" : asked;
  if ((have === `${lock} tools` || (want === "product" && have === `${lock} product`)) && lacks() === null) return;
  const named = what ?? (want === "product" ? "Drover's packages" : "packages and test tools");
  process.stderr.write(`Installing ${named}...\n`);
  // Not `npm ci`, which rejects a lockfile without other platforms' optional binaries. --ignore-scripts is not in .npmrc
  // because `npm pack` would then skip our own build.
  const args = ["install", "--ignore-scripts", "--no-save", "--no-audit", "--no-fund", "--include=optional"];
  if (want === "product") args.push("--omit=dev");
  // `npm run` passes the root's .npmrc settings down in the environment, which would override the directory's own.
  const { npm_config_engine_strict: _, ...env } = process.env;
  run("npm", args, root, env);
  const missing = lacks();
  if (missing !== null) {
    process.stderr.write(`${missing}\n`);
    process.exit(1);
  }
  writeFileSync(stampFile, `${lock} ${want}`);
}

/** Runs a program with its output on stderr. Exits this process if the program fails. */
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
