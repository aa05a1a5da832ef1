import * as z from "zod";

export const runModes = ["start", "resume", "fork"] as const;
/** What a caller may say began a run. `fork` follows from the request itself. */
export const callerTriggers = ["manual", "api", "schedule", "webhook", "chat", "agent"] as const;
export const triggerTypes = [...callerTriggers, "fork"] as const;

export const demandsSchema = z.object({
  hostname: z.string().optional(),
  /** The state directory it has to run in, by the id that its runners give it. */
  place_id: z.string().optional(),
  project_dir: z.string().optional(),
  executor_profile: z.string().optional(),
  executor_type: z.string().optional(),
  runner_id: z.string().optional(),
  tags: z.array(z.string()).optional(),
});
export type Demands = z.infer<typeof demandsSchema>;
