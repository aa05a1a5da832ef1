// `npm run torture [NAME...] [-- --engine sqlite|postgres] [--scale X] [--fresh]`: runs the torture tests of docs/torture.md
// at full size and prints one table at the end. The results of finished tests are saved, so that a later call runs only
// the others; --fresh starts over.
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensurePostgres } from "../test/postgres/ensure.mjs";
import { ensureBuilt } from "./lib/build.mjs";
import { ensureInstalled } from "./lib/install.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
ensureInstalled(root, "tools");
ensurePostgres();
const names = process.argv.slice(2).filter((arg) => /^[A-Za-z]/.test(arg) && !["sqlite", "postgres"].includes(arg));
if (names.length === 0 || names.includes("S9") || names.includes("agents"))
  ensureInstalled(join(root, "test", "clients"), "production", "the agent clients (about 1 GB, once)");
await ensureBuilt(root);

const { build } = await import("esbuild");
const directory = join(root, "dist-test");
mkdirSync(directory, { recursive: true });
const scripts = {
  "torture/main.ts": "torture.cjs",
  "test/fixtures/torture/host.ts": "torture-host.cjs",
  "test/fixtures/e2e/exec-many.ts": "torture-exec-many.cjs",
  // The coordinator in the test host loads these files as worker threads.
  "src/define/json-schema/engine.ts": "define-json-schema-engine.cjs",
  "src/serve/bodies/body-thread.ts": "serve-bodies-body-thread.cjs",
};
for (const [source, script] of Object.entries(scripts)) {
  await build({
    absWorkingDir: root,
    entryPoints: [source],
    outfile: join(directory, script),
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20.19",
    external: ["@photostructure/sqlite", "esbuild"],
    define: { DROVER_VERSION: '"0.0.0-torture"' },
    logOverride: { "empty-import-meta": "silent" },
  });
}
const [main, ...helpers] = Object.values(scripts)
  .slice(0, 3)
  .map((script) => join(directory, script));
const args = [main, root, ...helpers, ...process.argv.slice(2)];
const child = spawn(process.execPath, args, { cwd: root, stdio: "inherit" });
// The child cleans up after itself on Ctrl-C; wait for it.
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill(signal));
child.once("close", (status) => process.exit(status ?? 1));
