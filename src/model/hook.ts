import * as z from "zod";
import { pointerSchema, templateSchema, valueSourcesSchema } from "./value-sources.ts";

export const triggerNameSchema = z
  .string()
  .max(100)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
    "a name is letters, digits, '.', '_' and '-', and begins with a letter or digit",
  );
/** Given by the caller; else one of 32 random bytes is made. */
export const secretSchema = z
  .string()
  .min(16)
  .max(200)
  .regex(/^[\x21-\x7e]+$/, "printable ASCII without blanks");

/** How a sender proves itself: Drover's header with a time, or GitHub's X-Hub-Signature-256, which has none. */
export const hookSchemes = ["drover", "github"] as const;

const only = z
  .record(
    pointerSchema,
    z
      .array(z.union([z.string(), z.number(), z.boolean()]))
      .min(1)
      .max(100),
  )
  .refine((filter) => Object.keys(filter).length <= 20, "at most 20 conditions");

/** What of a hook its owner says. */
const definition = {
  agent_name: z.string().min(1).max(400),
  scheme: z.enum(hookSchemes),
  /** Taken from the body by JSON pointers. */
  parameters: valueSourcesSchema,
  /** `{{/pointer}}` is the body's value there. */
  prompt: templateSchema.nullable(),
  /** A delivery makes a run only where the body has one of these values at each pointer. */
  only: only.nullable(),
  /** Of GitHub: the X-GitHub-Event names that make a run; null: all but `ping`. */
  events: z.array(z.string().min(1).max(100)).min(1).max(100).nullable(),
  /** Whether questions of its runs go to people; null: what the agent says. */
  attended: z.boolean().nullable(),
  max_body_kb: z.int().min(1).max(1024),
  enabled: z.boolean(),
};

/** An address that submits a run for each signed request. */
export const hookSchema = z.object({
  name: z.string(),
  ...definition,
  created_by: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
});
export type Hook = z.infer<typeof hookSchema> & {
  /** In the record: what it was given with, encrypted, where its parameters or prompt are redacted. */
  sealed?: string;
};

export const newHookSchema = z.strictObject({
  name: triggerNameSchema,
  agent_name: definition.agent_name,
  scheme: definition.scheme.default("drover"),
  parameters: definition.parameters.default({}),
  prompt: definition.prompt.default(null),
  only: definition.only.default(null),
  events: definition.events.default(null),
  attended: definition.attended.default(null),
  max_body_kb: definition.max_body_kb.default(1024),
  enabled: definition.enabled.default(true),
  secret: secretSchema.optional(),
});

export const hookChangesSchema = z
  .strictObject({ ...definition, secret: secretSchema, rotate_secret: z.literal(true) })
  .partial()
  .refine(({ secret, rotate_secret }) => secret === undefined || rotate_secret === undefined, {
    message: "secret and rotate_secret exclude each other",
  });

/** With the secret, which is shown only when it is made. */
export const createdHookSchema = hookSchema.extend({ secret: z.string().optional() });

/** Of POST /hooks/{name}. */
export const hookAnswerSchema = z.object({
  /** null: the delivery was accepted, and its filter says that it makes no run. */
  run_id: z.string().nullable(),
  skipped: z.string().optional(),
});
