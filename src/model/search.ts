import * as z from "zod";

/** Where a run matches a search. */
export const searchMatchSchema = z.object({
  where: z.enum(["prompt", "result", "error", "tool_input"]).describe("`prompt` includes the parameters"),
  seq: z.number().int().nullable().describe("The seq of the matching tool_use event; null for other matches"),
  excerpt: z.string().describe("Plain text around the match, at most 200 characters"),
});
export type SearchMatch = z.infer<typeof searchMatchSchema>;
