// `npm test [-- VITEST ARGS]`: installs the tools, builds, checks, and runs every test.
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureBrowser } from "../test/browser/find-chromium.mjs";
import { ensurePostgres } from "../test/postgres/ensure.mjs";
import { ensureWebBuilt } from "./lib/build-web.mjs";
import { ensureBuilt } from "./lib/build.mjs";
import { ensureInstalled, run } from "./lib/install.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
ensureInstalled(root, "tools");
ensureInstalled(join(root, "test", "clients"), "production", "the agent clients that tests drive (about 1 GB, once)");
ensureInstalled(join(root, "docs", ".vitepress"), "production", "the packages of the documentation site");
ensureInstalled(join(root, "test", "nodes"), "production", "other versions of Node.js (about 250 MB, once)");
ensurePostgres();
ensureBrowser();
await ensureBuilt(root);
await ensureWebBuilt(root);
const args = process.argv.slice(2);
if (args.length === 0) run(process.execPath, ["scripts/check.mjs"], root);
const vitest = spawnSync(join(root, "node_modules", ".bin", "vitest"), ["run", ...args], {
  cwd: root,
  stdio: "inherit",
});
process.exit(vitest.status ?? 1);
