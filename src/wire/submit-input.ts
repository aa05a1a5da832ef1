import * as z from "zod";
import { callerTriggers } from "../model/demands.ts";
import { runRequestSchema } from "../model/run-request.ts";

const idempotencyKey = z.string().min(1).max(200).optional();

/** The input of `POST /runs`. It has its own file because `drover run` without a coordinator loads no other contract. */
export const submitInput = {
  headers: z.object({ "idempotency-key": idempotencyKey }),
  body: runRequestSchema.omit({ retry_of: true }).extend({ trigger_type: z.enum(callerTriggers).default("api") }),
};

/** One run of `POST /runs/batch`. */
export const batchItemSchema = submitInput.body.extend({ idempotency_key: idempotencyKey });
