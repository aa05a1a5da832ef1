import * as z from "zod";
import { commandSchema } from "./agent.ts";
import { isolationLevels } from "./process.ts";

const variableName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "not the name of a variable");

/** What one registration of a runner offers. Unknown keys are errors, so that a misspelt one never passes in silence. */
export const profileSchema = z.strictObject({
  description: z.string().optional(),
  /** The executor: one that is built in, or the name by which `command` or `module` is known. */
  type: z.string().min(1).max(100),
  /** A program that speaks the executor protocol; its path resolves against the runner's directory, then PATH. */
  command: commandSchema.optional(),
  /** What `command` can do beside starting: a module says so itself. */
  can: z
    .strictObject({
      resume: z.boolean().exactOptional(),
      fork: z.boolean().exactOptional(),
      ask: z.boolean().exactOptional(),
      input: z.boolean().exactOptional(),
      state: z.boolean().exactOptional(),
      park: z.boolean().exactOptional(),
    })
    .default({}),
  /** A file that exports an executor, resolved against the runner's directory. */
  module: z
    .string()
    .regex(/\.(?:js|mjs|ts)$/, "a module is a .js, .mjs or .ts file")
    .optional(),
  config: z.record(z.string(), z.unknown()).default({}),
  agents_dir: z.string().min(1).optional(),
  tags: z.array(z.string().min(1)).default([]),
  require_matching_tags: z.boolean().default(false),
  /** How many runs at once. */
  slots: z.number().int().min(1).max(1000).default(4),
  /** Variables of the runner that its runs get, beside the executor's own. */
  env_from: z.array(variableName).default([]),
  /** Variables that `${VAR}` in an agent may name. */
  allow_env: z.array(variableName).default([]),
  /** Where a run's project_dir may lie, beside the runner's own. */
  project_roots: z.array(z.string().min(1)).default([]),
  isolation: z.enum(["auto", ...isolationLevels]).optional(),
  leftovers: z.enum(["kill", "keep"]).optional(),
  home: z.enum(["user", "session"]).optional(),
  timeout_seconds: z.number().positive().optional(),
  idle_timeout_seconds: z.number().positive().optional(),
});
export type Profile = z.infer<typeof profileSchema>;
