// node compile-ahead.mjs NAME: runs dist/NAME.cjs once for real, and keeps what V8 compiled of it in dist/NAME.cache.
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const name = process.argv[2];
const file = join(root, "dist", `${name}.cjs`);
const { compile } = createRequire(file)(join(root, "bin", "load-compiled.js"));

const state = mkdtempSync(join(tmpdir(), "drover-compile-"));
process.env.DROVER_STATE_DIR = join(state, "state");
const script = compile(file, readFileSync(file, "utf8"));
const loaded = { exports: {} };
script.runInThisContext()(loaded.exports, createRequire(file), loaded, file, join(root, "dist"));

process.exit = (code) => {
  rmSync(state, { recursive: true, force: true });
  if (code !== 0) process.reallyExit(code);
  const cache = join(root, "dist", `${name}.cache`);
  writeFileSync(`${cache}.${process.pid}`, script.createCachedData());
  renameSync(`${cache}.${process.pid}`, cache);
  process.reallyExit(0);
};
// twice, so that what only an existing state directory leads to is compiled too
const { execFileSync } = await import("node:child_process");
execFileSync(process.execPath, [join(root, "bin", "drover.js"), "exec", "true"], { env: process.env });
loaded.exports.main(["exec", "true"]);
