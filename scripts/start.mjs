// `npm start`: installs and builds what is needed, starts Drover with its examples, and shows a first run.
import { spawn, spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureWebBuilt } from "./lib/build-web.mjs";
import { ensureBuilt } from "./lib/build.mjs";
import { ensureInstalled } from "./lib/install.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
ensureInstalled(root, "product");
await ensureBuilt(root);
await ensureWebBuilt(root);

const drover = join(root, "bin", "drover.js");
// words after `npm start --` are for `drover up`
const up = spawn(process.execPath, [drover, "up", "--examples", ...process.argv.slice(2)], {
  cwd: root,
  stdio: ["inherit", "inherit", "pipe"],
});
let told = "";
up.stderr.on("data", (chunk) => {
  process.stderr.write(chunk);
  if (told === null) return;
  told += chunk;
  if (!told.includes("Drover is up")) return;
  told = null;
  firstRun();
});
up.once("exit", (code, signal) => process.exit(code ?? (signal ? 1 : 0)));
// a terminal sends Ctrl-C to all of us; what ends us alone is passed on
process.on("SIGINT", () => undefined);
process.on("SIGTERM", () => up.kill("SIGTERM"));
// npm and its shell may be ended without a word to us: nothing is left running behind them
const parent = process.ppid;
setInterval(() => process.ppid === parent || up.kill("SIGTERM"), 500).unref();

function firstRun() {
  const words = ["run", "echo", "--message", "Hello World"];
  process.stdout.write('\n$ drover run echo --message "Hello World"\n');
  spawnSync(process.execPath, [drover, ...words], { cwd: root, stdio: "inherit" });
  process.stdout.write("\n$ drover runs list --limit 3\n");
  spawnSync(process.execPath, [drover, "runs", "list", "--limit", "3", "--quiet"], { cwd: root, stdio: "inherit" });
  process.stdout.write(
    "\nDrover goes on serving. Use it from another terminal as `npx drover ...` in this folder; Ctrl-C ends it.\n",
  );
  const link = spawnSync(process.execPath, [drover, "ui"], { cwd: root, encoding: "utf8" });
  process.stdout.write(
    `\nDashboard, signed in by this link once within ten minutes (\`npx drover ui\` makes another):\n${link.stdout}`,
  );
}
