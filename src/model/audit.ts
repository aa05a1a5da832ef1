import * as z from "zod";

/** The state of the audit chain, read without verifying it. */
export const auditStateSchema = z.object({
  rows: z.number().int().describe("Number of stored rows; retention removes old ones"),
  head: z.string().describe("COUNT:MAC of the last batch; store it elsewhere and pass it to a later verification"),
  head_expected: z
    .string()
    .nullable()
    .describe("The content of audit.head; null if no head is stored outside the database"),
  sealed_at: z.string().nullable().describe("When the last batch was sealed"),
  key_present: z.boolean(),
});
export type AuditState = z.infer<typeof auditStateSchema>;

export const auditVerificationSchema = z.object({
  whole: z.boolean(),
  rows: z.number().int().describe("Number of rows found intact"),
  head: z.string().describe("Head of the last intact batch"),
  faults: z
    .array(z.object({ what: z.string(), row_no: z.number().int().nullable(), batch_no: z.number().int().nullable() }))
    .describe("The first position where the chain was altered; empty if the chain is intact"),
});
export type AuditVerification = z.infer<typeof auditVerificationSchema>;
