// Bundles src/ into dist/. Every dynamic import of our own becomes a bundle of its own, so that a command
// loads only what it uses: start-up time is a feature.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";

/** @param {string} root */
export async function ensureBuilt(root) {
  const stampFile = join(root, "dist", ".stamp");
  const stamp = sourceStamp(root);
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp) return;
  await build(root);
  compileAhead(root);
  writeFileSync(stampFile, stamp);
}

/** The commands whose cold start counts, by the bundle they begin in. Only speed depends on it: where it fails, Drover compiles at each start. */
function compileAhead(root) {
  for (const words of [
    ["cli-exec", "exec", "true"],
    ["cli-main", "run", "echo", "--message", "compiled"],
    ["library-run-agent"],
  ]) {
    const script = join(root, "scripts", "lib", "compile-ahead.mjs");
    const { status, stderr } = spawnSync(process.execPath, [script, ...words], { cwd: root, encoding: "utf8" });
    if (status !== 0) process.stderr.write(`Not compiled ahead: ${stderr}\n`);
  }
}

/** @param {string} root */
async function build(root) {
  const { build: esbuild, stop } = await import("esbuild");
  const dist = join(root, "dist");
  // made aside and moved file by file: a Drover that runs from dist/ never sees half a build
  const aside = join(root, `dist.${process.pid}.tmp`);
  rmSync(aside, { recursive: true, force: true });
  mkdirSync(aside);
  const version = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version;
  const common = {
    absWorkingDir: root,
    bundle: true,
    platform: "node",
    target: "node20.19",
    external: ["@photostructure/sqlite", "esbuild"],
    define: { DROVER_VERSION: JSON.stringify(version) },
    legalComments: "none",
    logLevel: "warning",
  };

  const moduleHost = "src/execute/executors/host/module-host.ts";
  const pending = ["src/cli/main.ts", "src/cli/exec.ts", "src/procedural-exec.ts", moduleHost];
  await esbuild({
    ...common,
    entryPoints: ["src/index.ts"],
    outfile: join(aside, "index.mjs"),
    format: "esm",
    plugins: [lazyChunks(root, (file) => pending.push(file), throughLoader)],
    banner: {
      js: 'import { createRequire as drvRequire } from "node:module"; const require = drvRequire(import.meta.url);',
    },
  });
  const done = new Map();
  while (pending.length > 0) {
    const entry = pending.pop();
    if (done.has(entry)) continue;
    done.set(entry, chunkName(entry));
    await esbuild({
      ...common,
      entryPoints: [entry],
      outfile: join(aside, chunkName(entry)),
      format: "cjs",
      // sources look for their folder with __dirname first, and with import.meta only where that is missing
      logOverride: { "empty-import-meta": "silent" },
      // a script compiled ahead has no import(); the host, which needs it for users' modules, is started as a program
      supported: { "dynamic-import": entry === moduleHost },
      minifySyntax: true,
      minifyWhitespace: true,
      plugins: [lazyChunks(root, (file) => pending.push(file))],
    });
  }
  // its service would live as long as we do
  await stop();
  mkdirSync(dist, { recursive: true });
  const built = readdirSync(aside);
  // V8 knows the source of a cache by its length alone
  for (const file of readdirSync(dist)) if (file.endsWith(".cache")) rmSync(join(dist, file));
  for (const file of built) renameSync(join(aside, file), join(dist, file));
  for (const file of readdirSync(dist)) if (/\.[cm]js$/.test(file) && !built.includes(file)) rmSync(join(dist, file));
  rmSync(aside, { recursive: true });
}

/** src/cli/runs-list.ts -> cli-runs-list.cjs */
function chunkName(entry) {
  return `${relative("src", entry).replace(/\.ts$/, "").replaceAll("/", "-")}.cjs`;
}

/** The library has no loader around it: what it loads gets the one of the command line, with its code compiled ahead. */
function throughLoader(path) {
  return `require("../bin/load-compiled.js")(${JSON.stringify(path.slice("./".length, -".cjs".length))})`;
}

/** Each becomes a `require` of its bundle, done when it is asked for: the loader behind a real import() costs milliseconds. */
function lazyChunks(root, found, load = (path) => `require(${JSON.stringify(path)})`) {
  return {
    name: "lazy-chunks",
    setup(builder) {
      builder.onResolve({ filter: /^\.{1,2}\// }, (args) => {
        if (args.namespace === "lazy") return { path: args.path, external: true };
        if (args.kind !== "dynamic-import") return undefined;
        const file = relative(root, resolve(args.resolveDir, args.path));
        found(file);
        return { path: `./${chunkName(file)}`, namespace: "lazy" };
      });
      builder.onLoad({ filter: /.*/, namespace: "lazy" }, ({ path }) => ({
        contents: `module.exports = ${load(path)};`,
      }));
    },
  };
}

function sourceStamp(root) {
  const hash = createHash("sha256");
  for (const file of ["package.json", "package-lock.json", "scripts/lib/build.mjs", ...walk(join(root, "src"), root)]) {
    const { mtimeMs, size } = statSync(join(root, file));
    hash.update(`${file}\0${mtimeMs}\0${size}\n`);
  }
  return hash.digest("hex");
}

function* walk(folder, root) {
  for (const entry of readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* walk(path, root);
    else if (entry.name.endsWith(".ts") && !entry.name.endsWith(".test.ts")) yield relative(root, path);
  }
}
