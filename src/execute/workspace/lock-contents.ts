import * as z from "zod";
import { executionStartSchema } from "../../model/execution.ts";

/** The contents of a lock file. */
export const lockContentsSchema = z.object({
  directory: z.string(),
  run_id: z.string(),
  owner: executionStartSchema.shape.owner,
});
export type LockContents = z.infer<typeof lockContentsSchema>;
