import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** A runner's directory that comes with the package; null where it was left out. */
export function findPackageDirectory(name: "bundled" | "examples"): string | null {
  return findUpward(name, "profiles");
}

/** The built dashboard; null where it was not built. */
export function findWebDirectory(): string | null {
  return findUpward(join("dist", "web"), "index.html");
}

/** The folder of the package itself. */
export function findPackageRoot(): string | null {
  for (let directory = here(); ; directory = dirname(directory)) {
    if (existsSync(join(directory, "package.json"))) return directory;
    if (dirname(directory) === directory) return null;
  }
}

/** Looked for upward from this file. */
function findUpward(name: string, holds: string): string | null {
  let directory = here();
  for (;;) {
    const candidate = join(directory, name);
    if (existsSync(join(candidate, holds))) return candidate;
    // not past the package itself: what lies around it is someone else's
    if (existsSync(join(directory, "package.json")) || dirname(directory) === directory) return null;
    directory = dirname(directory);
  }
}

/** A CommonJS bundle has __dirname and no import.meta.dirname; the source tree has it the other way round. */
function here(): string {
  return typeof __dirname === "string" ? __dirname : import.meta.dirname;
}
