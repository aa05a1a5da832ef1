// `npm run docs [-- DIRECTORY]` builds the documentation site, into docs/.vitepress/dist unless you name another directory.
// `npm run docs -- --serve` serves it while you write.
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ensureInstalled } from "./lib/install.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const site = join(root, "docs", ".vitepress");
ensureInstalled(site, "production", "the packages of the documentation site");
const vitepress = await import(pathToFileURL(join(site, "node_modules", "vitepress", "dist", "node", "index.js")).href);

const [argument] = process.argv.slice(2);
if (argument === "--serve") {
  const server = await vitepress.createServer(join(root, "docs"));
  await server.listen();
  server.printUrls();
} else {
  const outDir = argument === undefined ? join(site, "dist") : resolve(argument);
  await vitepress.build(join(root, "docs"), { outDir });
  process.stderr.write(`Built ${outDir}\n`);
}
