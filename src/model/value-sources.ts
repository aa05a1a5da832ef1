import * as z from "zod";
import { placeholderPattern, type ValueSource } from "./json-values.ts";

/** RFC 6901: "" is the whole document, and "/a/0" is the first item of `a`. */
export const pointerSchema = z
  .string()
  .max(500)
  .regex(/^(?:\/(?:[^~/]|~[01])*)*$/, 'a JSON pointer is "" or starts with "/", such as /pull_request/title');

/**
 * Where one value comes from. Strings, numbers, booleans and lists are literals. `{from}` takes the value at a JSON
 * pointer, or `default` if there is none. `{value}` is a literal of any type, for objects.
 */
const valueSourceSchema: z.ZodType<ValueSource> = z.union([
  z.string(),
  z.number(),
  z.boolean(),
  z.null(),
  z.array(z.unknown()),
  z.strictObject({ from: pointerSchema, default: z.unknown().optional() }),
  z.strictObject({ value: z.unknown() }),
]);
export const valueSourcesSchema = z
  .record(z.string().min(1).max(200), valueSourceSchema)
  .refine((sources) => Object.keys(sources).length <= 100, "at most 100 parameters");

/** Text in which `{{/a/b}}` inserts the value at that JSON pointer. */
export const templateSchema = z
  .string()
  .max(100_000)
  .superRefine((text, context) => {
    for (const [, pointer = ""] of text.matchAll(placeholderPattern))
      if (!pointerSchema.safeParse(pointer).success)
        context.addIssue({ code: "custom", message: `{{${pointer.slice(0, 100)}}} is not a JSON pointer` });
  });
