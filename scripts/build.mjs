// `npm run build`: bundles, and the declarations of the public API.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, compileAhead } from "./lib/build.mjs";
import { ensureInstalled, run } from "./lib/install.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
ensureInstalled(root, "tools");
await build(root);
compileAhead(root);
const tsc = join(root, "node_modules", ".bin", "tsc");
if (existsSync(tsc)) run(tsc, ["-p", "tsconfig.types.json"], root);
process.stderr.write("Built dist/.\n");
