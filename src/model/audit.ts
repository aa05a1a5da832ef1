import * as z from "zod";

/** What is known of the audit chain without walking it. */
export const auditStateSchema = z.object({
  rows: z.number().int().describe("Rows that are kept; retention removes old ones"),
  head: z.string().describe("COUNT:MAC of the last batch; keep it elsewhere, and pass it to a later verify"),
  head_expected: z.string().nullable().describe("What audit.head says; null where nothing is kept beside the database"),
  sealed_at: z.string().nullable().describe("When the last batch was sealed"),
  key_present: z.boolean(),
});
export type AuditState = z.infer<typeof auditStateSchema>;

export const auditVerifiedSchema = z.object({
  whole: z.boolean(),
  rows: z.number().int().describe("Rows found to be as they were written"),
  head: z.string().describe("Of the last good batch"),
  faults: z
    .array(z.object({ what: z.string(), row_no: z.number().int().nullable(), batch_no: z.number().int().nullable() }))
    .describe("The first place where the chain is not as it was written; empty where it is whole"),
});
export type AuditVerified = z.infer<typeof auditVerifiedSchema>;
