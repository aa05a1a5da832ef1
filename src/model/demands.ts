import * as z from "zod";

export const runModes = ["start", "resume", "fork"] as const;
/** The triggers that a caller may set. `fork` is derived from the request. */
export const callerTriggers = ["manual", "api", "schedule", "webhook", "chat", "agent"] as const;
export const triggerTypes = [...callerTriggers, "fork"] as const;

export const demandsSchema = z.object({
  hostname: z.string().optional(),
  /** The id of the state directory that the run needs. Runners report it when they register. */
  place_id: z.string().optional(),
  project_dir: z.string().optional(),
  executor_profile: z.string().optional(),
  executor_type: z.string().optional(),
  runner_id: z.string().optional(),
  tags: z.array(z.string()).optional(),
});
export type Demands = z.infer<typeof demandsSchema>;
