// Installs the packages of package-lock.json unless they are installed already. `npm start` needs only the packages for
// production, `npm test` also the tools.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * @param {string} root @param {"production" | "tools"} requested @param {string} [description] shown in the progress message
 * @param {() => string | null} [findMissing] returns an error message if a package is still missing after the
 * installation, because npm skips optional packages silently
 */
export function ensureInstalled(root, requested, description, findMissing = () => null) {
  const stampFile = join(root, "node_modules", ".drover-installed");
  const lock = createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
  const installed = existsSync(stampFile) ? readFileSync(stampFile, "utf8") : "";
  // If the tools are installed, keep them. Installing only the packages for production would remove them.
  const target = installed.endsWith(" tools") ? "tools" : requested;
  if (
    installed.startsWith(`${lock} `) &&
    (target === "production" || installed.endsWith(" tools")) &&
    findMissing() === null
  )
    return;
  const label = description ?? (target === "production" ? "Drover's packages" : "packages and test tools");
  process.stderr.write(`Installing ${label}...\n`);
  // Not `npm ci`, which rejects a lockfile without other platforms' optional binaries. --ignore-scripts is not in .npmrc
  // because `npm pack` would then skip Drover's build.
  const args = ["install", "--ignore-scripts", "--no-save", "--no-audit", "--no-fund", "--include=optional"];
  if (target === "production") args.push("--omit=dev");
  // `npm run` passes the root's .npmrc settings down in the environment, which would override this directory's .npmrc.
  const { npm_config_engine_strict: _, ...env } = process.env;
  run("npm", args, root, env);
  const missing = findMissing();
  if (missing !== null) {
    process.stderr.write(`${missing}\n`);
    process.exit(1);
  }
  writeFileSync(stampFile, `${lock} ${target}`);
}

/** Runs a program with its output on stderr. Exits this process if the program fails. */
export function run(file, args, cwd, env = process.env) {
  const result = spawnSync(file, args, { cwd, env, stdio: ["ignore", 2, 2] });
  if (result.error) {
    process.stderr.write(`Cannot run ${file}: ${result.error.message}\n`);
    process.exit(1);
  }
  if (result.status !== 0) {
    process.stderr.write(`${file} ${args.join(" ")} failed (${result.signal ?? result.status}).\n`);
    process.exit(result.status || 1);
  }
}
