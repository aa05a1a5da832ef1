import * as z from "zod";
import { placeholder, type ValueSource } from "./json-values.ts";

/** RFC 6901: "" is the whole document, "/a/0" the first item of its `a`. */
export const pointerSchema = z
  .string()
  .max(500)
  .regex(/^(?:\/(?:[^~/]|~[01])*)*$/, 'a JSON pointer is "" or begins with "/", such as /pull_request/title');

/**
 * Where one value comes from. Text, numbers and lists stand for themselves; `{from}` takes the value at a JSON pointer, or
 * `default` where there is none; `{value}` is for objects.
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

/** `{{/a/b}}` in a text is the value at that JSON pointer. */
export const templateSchema = z
  .string()
  .max(100_000)
  .superRefine((text, context) => {
    for (const [, pointer = ""] of text.matchAll(placeholder))
      if (!pointerSchema.safeParse(pointer).success)
        context.addIssue({ code: "custom", message: `{{${pointer.slice(0, 100)}}} is not a JSON pointer` });
  });
