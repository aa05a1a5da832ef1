// `npm start`: installs packages and builds if necessary, starts Drover with its examples, and shows a first run.
import { spawn, spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { ensureWebBuilt } from "./lib/build-web.mjs";
import { ensureBuilt } from "./lib/build.mjs";
import { ensureInstalled } from "./lib/install.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
ensureInstalled(root, "production");
await ensureBuilt(root);
await ensureWebBuilt(root);

const drover = join(root, "bin", "drover.js");
// Pass the arguments after `npm start --` to `drover up`.
const up = spawn(process.execPath, [drover, "up", "--examples", ...process.argv.slice(2)], {
  cwd: root,
  stdio: ["inherit", "inherit", "pipe"],
});
// Print the sign-in link last, where people look for it.
let linesToHide = 0;
createInterface({ input: up.stderr }).on("line", (line) => {
  if (line.startsWith("Dashboard: ")) {
    showFirstRun(line.slice("Dashboard: ".length));
    // Hide the two log lines about the start and end of this run, which would follow the link.
    linesToHide = 2;
  } else if (linesToHide > 0 && / run \S+ of echo: /.test(line)) linesToHide--;
  // Correct the advice in the message, because npm passes only options after `--` to this script.
  else process.stderr.write(`${line.replace("use another port: --port", "use another port: npm start -- --port")}\n`);
});
up.once("exit", (code, signal) => process.exit(code ?? (signal ? 1 : 0)));
// A terminal sends Ctrl-C to the whole process group. SIGTERM reaches only this process, so pass it on.
process.on("SIGINT", () => undefined);
process.on("SIGTERM", () => up.kill("SIGTERM"));
// npm and its shell may die without signalling this process. Stop Drover then too.
const parent = process.ppid;
setInterval(() => process.ppid === parent || up.kill("SIGTERM"), 500).unref();

function showFirstRun(link) {
  const args = ["run", "echo", "--message", "Hello World"];
  process.stdout.write('$ npx drover run echo --message "Hello World"\n');
  spawnSync(process.execPath, [drover, ...args], { cwd: root, stdio: "inherit" });
  process.stdout.write("\n$ npx drover runs list --limit 3\n");
  spawnSync(process.execPath, [drover, "runs", "list", "--limit", "3", "--quiet"], { cwd: root, stdio: "inherit" });
  process.stdout.write(
    "\nDrover is still running. Use it from another terminal with `npx drover ...` in this directory; Ctrl-C stops it.\n" +
      "\nDashboard link. It signs you in once and expires after ten minutes; `npx drover ui` prints another:\n" +
      `${link}\n`,
  );
}
