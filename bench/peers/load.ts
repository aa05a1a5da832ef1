import { createRequire } from "node:module";
import { join } from "node:path";

/** One of the packages of bench/package.json, with the version that is asked for there. */
export function loadPeer<T>(benchFolder: string, name: string): T & { version: string } {
  const require = createRequire(join(benchFolder, "package.json"));
  // each caller names as much of the package as it uses
  const { dependencies } = require("./package.json") as { dependencies: Record<string, string> };
  return { ...(require(name) as T), version: dependencies[name] ?? "unknown" };
}
