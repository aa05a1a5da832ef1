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
/** Short enough for a page of runs and for comparing with runners. Stored demands may be longer and are not checked again. */
const shortText = z.string().max(255);
const maxTags = 64;

/** Demands as a request or an agent states them. */
export const newDemandsSchema = z.strictObject({
  hostname: shortText.optional(),
  place_id: shortText.optional(),
  project_dir: z.string().max(4096).optional(),
  executor_profile: shortText.optional(),
  executor_type: shortText.optional(),
  runner_id: shortText.optional(),
  tags: z.array(shortText).max(maxTags).optional(),
});

export type Demands = z.infer<typeof demandsSchema>;
