// `npm run screenshots [DIRECTORY]`: takes a screenshot of every page, dialog and menu of a Drover with sample data, in both
// themes and at widths of 1440 and 390 px. Also updates the README's two screenshots in docs/images.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureInstalled } from "./lib/install.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
ensureInstalled(root, "tools");
const directory = resolve(process.argv[2] ?? join(root, "screenshots"));
const { status } = spawnSync(
  join(root, "node_modules", ".bin", "vitest"),
  ["run", "--project", "browser", "test/browser/accessible.test.ts"],
  { cwd: root, stdio: "inherit", env: { ...process.env, DROVER_SCREENSHOTS: directory } },
);
if (status !== 0) process.stderr.write("Not all screenshots could be taken: see the output of the tests above.\n");
else {
  process.stderr.write(`Saved the screenshots to ${directory}\n`);
  const images = join(root, "docs", "images");
  mkdirSync(images, { recursive: true });
  for (const name of ["overview", "run"])
    copyFileSync(join(directory, `readme-${name}.png`), join(images, `${name}.png`));
}
process.exit(status ?? 1);
