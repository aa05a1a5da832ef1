import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Guard } from "./guard.ts";

/** Returns the end of what the programs print from now on, which contains the reason of a failure. */
export function followLog(guard: Guard): () => string {
  const file = join(guard.directory, "log");
  const { size } = statSync(file);
  return () => readFileSync(file).subarray(size).toString("utf8").slice(-4000);
}
