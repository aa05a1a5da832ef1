import { createRequire } from "node:module";
import { join } from "node:path";

/** Loads a package of bench/package.json, with the version named there. */
export function loadPeer<T>(benchDirectory: string, name: string): T & { version: string } {
  const require = createRequire(join(benchDirectory, "package.json"));
  // Each caller declares the part of the package it uses.
  const { dependencies } = require("./package.json") as { dependencies: Record<string, string> };
  return { ...(require(name) as T), version: dependencies[name] ?? "unknown" };
}
