import * as z from "zod";
import { pointerSchema, templateSchema, valueSourcesSchema } from "./value-sources.ts";

export const triggerNameSchema = z
  .string()
  .max(100)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
    "a name consists of letters, digits, '.', '_' and '-', and starts with a letter or digit",
  );
/** A secret chosen by the caller. Without one, Drover generates 32 random bytes. */
export const secretSchema = z
  .string()
  .min(16)
  .max(200)
  .regex(/^[\x21-\x7e]+$/, "must be printable ASCII without spaces");

/** How a sender signs: Drover's header, which includes a timestamp, or GitHub's X-Hub-Signature-256, which does not. */
export const hookSchemes = ["drover", "github"] as const;

const filterSchema = z
  .record(
    pointerSchema,
    z
      .array(z.union([z.string(), z.number(), z.boolean()]))
      .min(1)
      .max(100),
  )
  .refine((filter) => Object.keys(filter).length <= 20, "at most 20 conditions");

/** The fields that the owner of a hook sets. */
const definitionFields = {
  agent_name: z.string().min(1).max(400),
  scheme: z.enum(hookSchemes),
  /** Where each parameter comes from: a constant, or a JSON pointer into the body. */
  parameters: valueSourcesSchema,
  /** `{{/pointer}}` inserts the value at that JSON pointer into the body. */
  prompt: templateSchema.nullable(),
  /** A filter: a delivery creates a run only if the body has one of the listed values at every pointer. */
  only: filterSchema.nullable(),
  /** For GitHub: the X-GitHub-Event names that create a run. null: all except `ping`. */
  events: z.array(z.string().min(1).max(100)).min(1).max(100).nullable(),
  /** Whether questions of its runs go to people. null: as set by the agent. */
  attended: z.boolean().nullable(),
  max_body_kb: z.int().min(1).max(1024),
  enabled: z.boolean(),
};

/** An address that creates a run for each signed request. */
export const hookSchema = z.object({
  name: z.string(),
  ...definitionFields,
  created_by: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
});
export type Hook = z.infer<typeof hookSchema> & {
  /** The original parameters and prompt, encrypted, if those stored here are redacted. */
  sealed?: string;
};

export const newHookSchema = z.strictObject({
  name: triggerNameSchema,
  agent_name: definitionFields.agent_name,
  scheme: definitionFields.scheme.default("drover"),
  parameters: definitionFields.parameters.default({}),
  prompt: definitionFields.prompt.default(null),
  only: definitionFields.only.default(null),
  events: definitionFields.events.default(null),
  attended: definitionFields.attended.default(null),
  max_body_kb: definitionFields.max_body_kb.default(1024),
  enabled: definitionFields.enabled.default(true),
  secret: secretSchema.optional(),
});

export const hookChangesSchema = z
  .strictObject({ ...definitionFields, secret: secretSchema, rotate_secret: z.literal(true) })
  .partial()
  .refine(({ secret, rotate_secret }) => secret === undefined || rotate_secret === undefined, {
    message: "set either secret or rotate_secret, not both",
  });

/** A hook with its secret, which is shown only once. */
export const createdHookSchema = hookSchema.extend({ secret: z.string().optional() });

/** The response to POST /hooks/{name}. */
export const hookResponseSchema = z.object({
  /** null if the delivery was accepted but the hook's filter excludes it. */
  run_id: z.string().nullable(),
  skipped: z.string().optional(),
});
