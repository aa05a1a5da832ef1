import * as z from "zod";

const count = z.number().int();

/** Statistics of the runs that the caller can see, over a span of time and now. */
export const statsSchema = z.object({
  since: z.string().describe("The start of the first bucket"),
  until: z.string(),
  bucket_seconds: count.describe("900 up to a day, 3600 up to a week, 86400 beyond"),
  throughput: z
    .array(z.object({ at: z.string(), completed: count, failed: count, cancelled: count }))
    .describe("Runs by the time they ended: one entry per bucket, earliest first, including empty buckets"),
  now: z.object({ pending: count, running: count.describe("Assigned to a runner"), waiting: count, parked: count }),
  waiting: z
    .array(z.object({ reason: z.string(), count }))
    .describe(
      "Pending, waiting and parked runs by the reason they wait, as in /runs/{run_id}/why; `turn` means that only other runs are ahead",
    ),
  failures: z
    .array(z.object({ reason: z.string(), count }))
    .describe("Runs that failed within the span, by failure reason"),
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
    .describe("Usage by agent and UTC day, latest day first; at most 1000 rows"),
  runs_finished: count,
});
export type Stats = z.infer<typeof statsSchema>;

export interface StatsReads {
  /** `created_by` restricts the result to runs of this creator. `since` is inclusive and `until` exclusive, both ISO. */
  stats(span: { since: string; until: string; created_by?: string }): Promise<Stats>;
}
