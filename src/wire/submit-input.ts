import * as z from "zod";
import { callerTriggers } from "../model/demands.ts";
import { runRequestSchema } from "../model/run-request.ts";

/** What `POST /runs` takes. On its own, as `drover run` without a coordinator loads it and no other contract. */
export const submitInput = {
  headers: z.object({ "idempotency-key": z.string().min(1).max(200).optional() }),
  body: runRequestSchema.omit({ retry_of: true }).extend({ trigger_type: z.enum(callerTriggers).default("api") }),
};
