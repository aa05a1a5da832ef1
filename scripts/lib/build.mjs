// Bundles src/ into dist/. Every dynamically imported module of src/ becomes a separate bundle, so that a command loads
// only the code it uses and starts fast.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative, resolve } from "node:path";

/** @param {string} root */
export async function ensureBuilt(root) {
  const stampFile = join(root, "dist", ".stamp");
  const stamp = createSourceStamp(root);
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp) return;
  await build(root);
  precompile(root);
  writeFileSync(stampFile, stamp);
}

/** Precompiles the commands whose cold start matters. If this fails, Drover still works but starts more slowly. */
function precompile(root) {
  for (const args of [
    ["cli-exec", "exec", "true"],
    ["cli-main", "run", "echo", "--message", "compiled"],
    ["library-run-agent"],
  ]) {
    const script = join(root, "scripts", "lib", "precompile.mjs");
    const { status, stderr } = spawnSync(process.execPath, [script, ...args], { cwd: root, encoding: "utf8" });
    if (status !== 0) process.stderr.write(`Could not precompile ${args.join(" ")}: ${stderr}\n`);
  }
}

/** @param {string} root */
async function build(root) {
  const { build: esbuild, stop } = await import("esbuild");
  const dist = join(root, "dist");
  // Build in a temporary directory and move the files, so that a Drover running from dist/ never sees half a build.
  const staging = join(root, `dist.${process.pid}.tmp`);
  rmSync(staging, { recursive: true, force: true });
  mkdirSync(staging);
  const version = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version;
  const common = {
    absWorkingDir: root,
    bundle: true,
    platform: "node",
    target: "node20.19",
    external: ["@photostructure/sqlite", "esbuild"],
    define: { DROVER_VERSION: JSON.stringify(version) },
    legalComments: "none",
    // Keeps error output short: for an uncaught error, Node.js prints the whole source line that threw it.
    lineLimit: 120,
    logLevel: "warning",
  };

  const moduleHost = "src/execute/executors/host/module-host.ts";
  const pending = [
    "src/cli/main.ts",
    "src/cli/exec.ts",
    "src/procedural-exec.ts",
    moduleHost,
    "src/serve/bodies/body-thread.ts",
  ];
  // The entry point of the library is not precompiled, because programs load it with `require` or `import`.
  await esbuild({
    ...common,
    entryPoints: ["src/index.ts"],
    outfile: join(staging, "index.cjs"),
    format: "cjs",
    logOverride: { "empty-import-meta": "silent" },
    plugins: [createLazyChunks(root, (file) => pending.push(file), requireViaLoader)],
  });
  // index.mjs re-exports index.cjs, so that a program that loads both has only one copy of the library.
  const names = Object.keys(createRequire(import.meta.url)(join(staging, "index.cjs")));
  writeFileSync(join(staging, "index.mjs"), `export { ${names.join(", ")} } from "./index.cjs";\n`);
  const bundled = new Set();
  while (pending.length > 0) {
    const entry = pending.pop();
    if (bundled.has(entry)) continue;
    bundled.add(entry);
    await esbuild({
      ...common,
      entryPoints: [entry],
      outfile: join(staging, toChunkName(entry)),
      format: "cjs",
      // Sources use import.meta only if __dirname is missing.
      logOverride: { "empty-import-meta": "silent" },
      // A precompiled script cannot use import(). The module host needs it for users' modules, so it is not precompiled.
      supported: { "dynamic-import": entry === moduleHost },
      minifySyntax: true,
      minifyWhitespace: true,
      plugins: [createLazyChunks(root, (file) => pending.push(file))],
    });
  }
  // Stop esbuild's service process, which would keep running.
  await stop();
  mkdirSync(dist, { recursive: true });
  const built = readdirSync(staging);
  // V8 compares only the length of the source with the cache, so remove stale caches.
  for (const file of readdirSync(dist)) if (file.endsWith(".cache")) rmSync(join(dist, file));
  for (const file of built) renameSync(join(staging, file), join(dist, file));
  for (const file of readdirSync(dist)) if (/\.[cm]js$/.test(file) && !built.includes(file)) rmSync(join(dist, file));
  rmSync(staging, { recursive: true });
}

/** Returns the file name of a bundle: cli-runs-list.cjs for src/cli/runs-list.ts. */
function toChunkName(entry) {
  return `${relative("src", entry).replace(/\.ts$/, "").replaceAll("/", "-")}.cjs`;
}

/** The library's entry requires its chunks via the command line's loader, which uses their caches. */
function requireViaLoader(path) {
  return `require("../bin/load-compiled.js")(${JSON.stringify(path.slice("./".length, -".cjs".length))})`;
}

/** Turns each dynamic import into a lazy `require` of its bundle, which is milliseconds faster than a real import(). */
function createLazyChunks(root, onChunk, toRequire = (path) => `require(${JSON.stringify(path)})`) {
  return {
    name: "lazy-chunks",
    setup(builder) {
      builder.onResolve({ filter: /^\.{1,2}\// }, (args) => {
        if (args.namespace === "lazy") return { path: args.path, external: true };
        if (args.kind !== "dynamic-import") return undefined;
        const file = relative(root, resolve(args.resolveDir, args.path));
        onChunk(file);
        return { path: `./${toChunkName(file)}`, namespace: "lazy" };
      });
      builder.onLoad({ filter: /.*/, namespace: "lazy" }, ({ path }) => ({
        contents: `module.exports = ${toRequire(path)};`,
      }));
    },
  };
}

function createSourceStamp(root) {
  const hash = createHash("sha256");
  for (const file of [
    "package.json",
    "package-lock.json",
    "scripts/lib/build.mjs",
    ...listSourceFiles(join(root, "src"), root),
  ]) {
    const { mtimeMs, size } = statSync(join(root, file));
    hash.update(`${file}\0${mtimeMs}\0${size}\n`);
  }
  return hash.digest("hex");
}

function* listSourceFiles(directory, root) {
  for (const entry of readdirSync(directory, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) yield* listSourceFiles(path, root);
    else if (entry.name.endsWith(".ts") && !entry.name.endsWith(".test.ts")) yield relative(root, path);
  }
}
