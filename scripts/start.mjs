// `npm start`: installs and builds what is needed, starts Drover with its examples, and shows a first run.
import { spawn, spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
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
// its link is kept for the end, where people look for it
createInterface({ input: up.stderr }).on("line", (line) => {
  if (line.startsWith("Dashboard: ")) firstRun(line.slice("Dashboard: ".length));
  else process.stderr.write(`${line}\n`);
});
up.once("exit", (code, signal) => process.exit(code ?? (signal ? 1 : 0)));
// a terminal sends Ctrl-C to all of us; what ends us alone is passed on
process.on("SIGINT", () => undefined);
process.on("SIGTERM", () => up.kill("SIGTERM"));
// npm and its shell may be ended without a word to us: nothing is left running behind them
const parent = process.ppid;
setInterval(() => process.ppid === parent || up.kill("SIGTERM"), 500).unref();

function firstRun(link) {
  const words = ["run", "echo", "--message", "Hello World"];
  process.stdout.write('$ drover run echo --message "Hello World"\n');
  spawnSync(process.execPath, [drover, ...words], { cwd: root, stdio: "inherit" });
  process.stdout.write("\n$ drover runs list --limit 3\n");
  spawnSync(process.execPath, [drover, "runs", "list", "--limit", "3", "--quiet"], { cwd: root, stdio: "inherit" });
  process.stdout.write(
    "\nDrover keeps serving. Use it from another terminal as `npx drover ...` in this folder; Ctrl-C ends it.\n" +
      "\nThe dashboard. This link signs you in once, within ten minutes; `npx drover ui` prints another:\n" +
      `${link}\n`,
  );
}
