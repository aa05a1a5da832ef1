import * as z from "zod";
import { executionStartSchema } from "../../model/execution.ts";

/** The content of a claim file. */
export const directoryClaimSchema = z.object({
  directory: z.string(),
  run_id: z.string(),
  owner: executionStartSchema.shape.owner,
});
export type DirectoryClaim = z.infer<typeof directoryClaimSchema>;
