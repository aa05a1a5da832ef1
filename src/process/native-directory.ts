import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * The package's native/ folder, looked for upward from this file: src/process in the source tree,
 * dist in a bundle. null where the package was installed without it.
 */
export function findNativeDirectory(): string | null {
  // A CommonJS bundle has __dirname and no import.meta.dirname; the source tree has it the other way round.
  let directory = typeof __dirname === "string" ? __dirname : import.meta.dirname;
  for (;;) {
    const candidate = join(directory, "native");
    if (existsSync(join(candidate, "init.pl"))) return candidate;
    const parent = dirname(directory);
    if (parent === directory) return null;
    directory = parent;
  }
}
