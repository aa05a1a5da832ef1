import { join } from "node:path";
import { start } from "../src/process/start.ts";
import { killBatch } from "../test/fixtures/process/kill-batch.ts";
import type { Finding, Tools } from "./finding.ts";

/** K1: commands try eight ways to escape timeouts and cancels. Nothing is alive when the result arrives. */
export async function escapes({ kills }: { kills: number }, { root }: Tools): Promise<Finding> {
  const startedAt = performance.now();
  const report = await killBatch({
    start,
    isolation: "auto",
    scripts: join(root, "test/fixtures/escape"),
    count: kills,
    concurrency: 4,
  });
  return {
    seen: {
      "timeouts and cancels": report.ended,
      alive: report.survived.length,
      "reported wrongly": report.wrong.length,
      ms: Math.round(performance.now() - startedAt),
    },
    broken: [
      ...report.survived,
      ...report.wrong,
      // Weaker levels make no such promise. null means that it was ended before it started.
      ...(report.levels.every((level) => level === "pid" || level === "sandbox" || level === "null")
        ? []
        : [`isolation was ${report.levels.join(", ")}`]),
    ],
    late: [],
  };
}
