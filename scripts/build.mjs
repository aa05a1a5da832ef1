// `npm run build`, also run before `npm pack`: builds the bundles and the type declarations of the public API.
import { rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureWebBuilt } from "./lib/build-web.mjs";
import { ensureBuilt } from "./lib/build.mjs";
import { ensureInstalled, run } from "./lib/install.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
ensureInstalled(root, "tools");
await ensureBuilt(root);
await ensureWebBuilt(root);
// Remove declarations of deleted source files, which would be packed too.
rmSync(join(root, "dist", "types"), { recursive: true, force: true });
run(join(root, "node_modules", ".bin", "tsc"), ["-p", "tsconfig.types.json"], root);
// The declarations are those of a CommonJS package. Importers need an entry that counts as an ES module.
writeFileSync(join(root, "dist", "types", "index.d.mts"), 'export * from "./index.js";\n');
process.stderr.write("Built dist/.\n");
