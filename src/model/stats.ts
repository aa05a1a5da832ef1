import * as z from "zod";

const count = z.number().int();

/** How the runs that somebody sees are doing, over a span of time and now. */
export const statsSchema = z.object({
  since: z.string().describe("The start of the first bucket"),
  until: z.string(),
  bucket_seconds: count.describe("900 up to a day, 3600 up to a week, 86400 beyond"),
  throughput: z
    .array(z.object({ at: z.string(), completed: count, failed: count, cancelled: count }))
    .describe("Runs by when they ended: every bucket, the earliest first, empty ones included"),
  now: z.object({ pending: count, running: count.describe("With a runner"), waiting: count, parked: count }),
  waiting: z
    .array(z.object({ reason: z.string(), count }))
    .describe(
      "Pending, waiting and parked runs by what holds them back, in the words of /runs/{run_id}/why; `turn`: nothing but other runs before it",
    ),
  failures: z.array(z.object({ reason: z.string(), count })).describe("Runs that failed within the span, by reason"),
  cost: z
    .array(
      z.object({
        day: z.string(),
        agent_name: z.string(),
        runs: count.describe("Runs whose first turn was on that UTC day"),
        cost_usd: z.number().nullable(),
        input_tokens: z.number(),
        output_tokens: z.number(),
      }),
    )
    .describe("What agents used on each UTC day of the span, the latest day first; at most 1000 rows"),
  runs_finished: count,
});
export type Stats = z.infer<typeof statsSchema>;

export interface StatsReads {
  /** `created_by`: only of this creator's runs. Times are ISO, inclusive and exclusive. */
  stats(span: { since: string; until: string; created_by?: string }): Promise<Stats>;
}
