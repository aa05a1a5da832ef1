// node precompile.mjs BUNDLE ARG...: calls main(ARG...) of dist/BUNDLE.cjs, or its runAgent if it has no main, and stores
// the V8 code cache of each loaded bundle in dist/NAME.cache.
import { execFileSync } from "node:child_process";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const [bundle, ...args] = process.argv.slice(2);

const directory = mkdtempSync(join(tmpdir(), "drover-compile-"));
process.env.DROVER_STATE_DIR = join(directory, "state");
// Run the command once before, so that the code for an existing state directory is compiled too.
if (args.length > 0) execFileSync(process.execPath, [join(root, "bin", "drover.js"), ...args]);

const loadCompiled = createRequire(import.meta.url)(join(root, "bin", "load-compiled.js"));
process.exit = (code) => {
  rmSync(directory, { recursive: true, force: true });
  if (code !== 0) process.reallyExit(code);
  for (const [name, { script }] of loadCompiled.loaded) {
    const cache = join(root, "dist", `${name}.cache`);
    writeFileSync(`${cache}.${process.pid}`, script.createCachedData());
    renameSync(`${cache}.${process.pid}`, cache);
  }
  process.reallyExit(0);
};
const { main, runAgent } = loadCompiled(bundle);
if (main) main(args);
else {
  const agent = { name: "compiled", executor: "model", provider: "scripted" };
  const options = { agent, prompt: "compiled", stateDir: process.env.DROVER_STATE_DIR, cwd: directory };
  await runAgent(options);
  const { success } = await runAgent(options);
  // Load this bundle without running it, because it needs an optional package and an API key.
  loadCompiled("execute-executors-claude-sdk-claude-sdk");
  process.exit(success ? 0 : 1);
}
