import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** A runner's directory that ships with the package; null if this installation lacks it. */
export function findPackageDirectory(name: "bundled" | "examples"): string | null {
  return findUpward(name, "profiles");
}

/** The built dashboard; null if it was not built. */
export function findWebDirectory(): string | null {
  return findUpward(join("dist", "web"), "index.html");
}

/** The package's own root directory. */
export function findPackageRoot(): string | null {
  for (let directory = getSourceDirectory(); ; directory = dirname(directory)) {
    if (existsSync(join(directory, "package.json"))) return directory;
    if (dirname(directory) === directory) return null;
  }
}

/** Searches upward from this file for a directory that contains `marker`. */
function findUpward(name: string, marker: string): string | null {
  let directory = getSourceDirectory();
  for (;;) {
    const candidate = join(directory, name);
    if (existsSync(join(candidate, marker))) return candidate;
    // Stop at the package root: directories above it belong to other projects.
    if (existsSync(join(directory, "package.json")) || dirname(directory) === directory) return null;
    directory = dirname(directory);
  }
}

/** A CommonJS bundle has only __dirname; the source tree has only import.meta.dirname. */
function getSourceDirectory(): string {
  return typeof __dirname === "string" ? __dirname : import.meta.dirname;
}
