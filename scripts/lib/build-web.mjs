// Builds the dashboard in web/ into dist/web, unless its sources are unchanged since the last build.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { ensureInstalled } from "./install.mjs";

/** @param {string} root */
export async function ensureWebBuilt(root) {
  const web = join(root, "web");
  const out = join(root, "dist", "web");
  const stampFile = join(root, "dist", ".web-stamp");
  const stamp = createSourceStamp(root);
  if (existsSync(join(out, "index.html")) && existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp) return;
  ensureInstalled(web, "production", "the dashboard's packages");
  process.stderr.write("Building the dashboard...\n");
  const staging = join(root, `dist.web.${process.pid}.tmp`);
  rmSync(staging, { recursive: true, force: true });
  const { build } = await import(pathToFileURL(join(web, "node_modules", "vite", "dist", "node", "index.js")).href);
  // Vitest sets NODE_ENV to "test". React's development checks would make the bundle 50 % larger and slower.
  const originalNodeEnv = process.env["NODE_ENV"];
  process.env["NODE_ENV"] = "production";
  try {
    await build({ root: web, configFile: join(web, "vite.config.mjs"), logLevel: "error", build: { outDir: staging } });
  } finally {
    if (originalNodeEnv === undefined) delete process.env["NODE_ENV"];
    else process.env["NODE_ENV"] = originalNodeEnv;
  }
  const builtFiles = [...listFiles(staging, staging)];
  // Move index.html last, so that a running Drover never serves a page whose files are still missing.
  builtFiles.sort((a, b) => Number(a === "index.html") - Number(b === "index.html"));
  for (const file of builtFiles) {
    mkdirSync(dirname(join(out, file)), { recursive: true });
    renameSync(join(staging, file), join(out, file));
  }
  for (const file of listFiles(out, out)) if (!builtFiles.includes(file)) rmSync(join(out, file));
  rmSync(staging, { recursive: true });
  writeFileSync(stampFile, stamp);
}

function createSourceStamp(root) {
  const hash = createHash("sha256");
  const sources = ["web", "src/model", "src/wire"].flatMap((directory) => [...listFiles(join(root, directory), root)]);
  for (const file of ["scripts/lib/build-web.mjs", ...sources]) {
    const { mtimeMs, size } = statSync(join(root, file));
    hash.update(`${file}\0${mtimeMs}\0${size}\n`);
  }
  return hash.digest("hex");
}

function* listFiles(directory, root) {
  for (const entry of readdirSync(directory, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.name === "node_modules" || entry.name.endsWith(".test.ts")) continue;
    const path = join(directory, entry.name);
    if (entry.isDirectory()) yield* listFiles(path, root);
    else yield relative(root, path);
  }
}
