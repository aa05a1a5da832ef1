import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Finds the package's native/ directory by searching upward from this file, which is in src/process in the source tree
 * and in dist in a bundle. null if the package was installed without it.
 */
export function findNativeDirectory(): string | null {
  // A CommonJS bundle has __dirname but no import.meta.dirname; in the source tree it is the reverse.
  let directory = typeof __dirname === "string" ? __dirname : import.meta.dirname;
  for (;;) {
    const candidate = join(directory, "native");
    if (existsSync(join(candidate, "init.pl"))) return candidate;
    const parent = dirname(directory);
    if (parent === directory) return null;
    directory = parent;
  }
}
