// node compile-ahead.mjs BUNDLE WORD...: calls main(WORD...) of dist/BUNDLE.cjs, or its runAgent if it has one, and stores
// the V8 code cache of each loaded bundle in dist/NAME.cache.
import { execFileSync } from "node:child_process";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const [bundle, ...words] = process.argv.slice(2);

const state = mkdtempSync(join(tmpdir(), "drover-compile-"));
process.env.DROVER_STATE_DIR = join(state, "state");
// Run once before, so that code for an existing state directory is compiled too.
if (words.length > 0) execFileSync(process.execPath, [join(root, "bin", "drover.js"), ...words]);

const load = createRequire(import.meta.url)(join(root, "bin", "load-compiled.js"));
process.exit = (code) => {
  rmSync(state, { recursive: true, force: true });
  if (code !== 0) process.reallyExit(code);
  for (const [name, { script }] of load.loaded) {
    const cache = join(root, "dist", `${name}.cache`);
    writeFileSync(`${cache}.${process.pid}`, script.createCachedData());
    renameSync(`${cache}.${process.pid}`, cache);
  }
  process.reallyExit(0);
};
const { main, runAgent } = load(bundle);
if (main) main(words);
else {
  const agent = { name: "compiled", executor: "model", provider: "scripted" };
  const options = { agent, prompt: "compiled", stateDir: process.env.DROVER_STATE_DIR, cwd: state };
  await runAgent(options);
  const { success } = await runAgent(options);
  // Only load this one: running it would need an optional package and a key.
  load("execute-executors-claude-sdk-claude-sdk");
  process.exit(success ? 0 : 1);
}
