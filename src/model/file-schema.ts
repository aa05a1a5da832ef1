import * as z from "zod";
import type { StoredFile } from "./file.ts";

export const storedFileSchema = z.object({
  path: z.string(),
  size: z.number().int(),
  sha256: z.string(),
  media_type: z.string(),
}) satisfies z.ZodType<StoredFile>;
