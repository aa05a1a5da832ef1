// `npm start`: installs and builds what is needed, then does Drover's main job: a command, on the record.
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureBuilt } from "./lib/build.mjs";
import { ensureInstalled } from "./lib/install.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
ensureInstalled(root, "product");
await ensureBuilt(root);

const drover = join(root, "bin", "drover.js");
show('drover exec "echo hello from $(uname -s)"', ["exec", "echo hello from $(uname -s)"]);
show("drover runs list --limit 5", ["runs", "list", "--limit", "5"]);
show("drover audit verify", ["audit", "verify"]);
process.stdout.write(`
That command ran in its own process namespace where this machine has one, and is on the record.
Next:
  npx drover exec "npm --version" --json    a result as JSON
  npx drover doctor                         what this machine can isolate and limit
  npx drover --help                         everything else
`);

function show(shown, args) {
  process.stdout.write(`\n$ ${shown}\n`);
  const { status } = spawnSync(process.execPath, [drover, ...args], { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}
