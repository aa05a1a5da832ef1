import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Guard } from "./guard.ts";

/** What the programs print from now on: its end, that is, which has the reason. */
export function followLog(guard: Guard): () => string {
  const file = join(guard.folder, "log");
  const { size } = statSync(file);
  return () => readFileSync(file).subarray(size).toString("utf8").slice(-4000);
}
