import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** A runner's directory that comes with the package, looked for upward from this file; null where it was left out. */
export function findPackageFolder(name: "bundled" | "examples"): string | null {
  // A CommonJS bundle has __dirname and no import.meta.dirname; the source tree has it the other way round.
  let directory = typeof __dirname === "string" ? __dirname : import.meta.dirname;
  for (;;) {
    const candidate = join(directory, name);
    if (existsSync(join(candidate, "profiles"))) return candidate;
    // not past the package itself: what lies around it is someone else's
    if (existsSync(join(directory, "package.json")) || dirname(directory) === directory) return null;
    directory = dirname(directory);
  }
}
