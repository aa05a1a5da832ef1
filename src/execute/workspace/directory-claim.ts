import * as z from "zod";
import { executionStartSchema } from "../../model/execution.ts";

/** What a claim file says. */
export const directoryClaimSchema = z.object({
  directory: z.string(),
  run_id: z.string(),
  owner: executionStartSchema.shape.owner,
});
export type DirectoryClaim = z.infer<typeof directoryClaimSchema>;
