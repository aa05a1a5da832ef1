// `npm run screenshots [FOLDER]`: a picture of every page, dialog and menu in both themes at 1440 and 390 px, of a Drover
// with something to show. The two pictures of the README are taken with them and put into docs/images.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync } from "node:fs";
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
if (status === 0) {
  const images = join(root, "docs", "images");
  mkdirSync(images, { recursive: true });
  for (const name of ["overview", "run"]) copyFileSync(join(folder, `readme-${name}.png`), join(images, `${name}.png`));
}
process.exit(status ?? 1);
