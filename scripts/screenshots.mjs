// `npm run screenshots [FOLDER]`: a picture of every page in both themes at 1440 and 390 px, of a Drover with something to show.
import { spawnSync } from "node:child_process";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureInstalled } from "./lib/install.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
ensureInstalled(root, "tools");
const folder = resolve(process.argv[2] ?? join(root, "screenshots"));
const { status } = spawnSync(
  join(root, "node_modules", ".bin", "vitest"),
  ["run", "--project", "browser", "test/browser/accessible.test.ts"],
  { cwd: root, stdio: "inherit", env: { ...process.env, DROVER_SCREENSHOTS: folder } },
);
process.stderr.write(`The pictures are in ${folder}\n`);
process.exit(status ?? 1);
