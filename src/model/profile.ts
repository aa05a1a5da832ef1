import * as z from "zod";
import { commandSchema } from "./agent.ts";
import { isolationLevels } from "./process.ts";

const variableName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "is not a valid variable name");

/** What one registration of a runner offers. Unknown keys are errors, so that a typo is never ignored. */
export const profileSchema = z.strictObject({
  description: z.string().optional(),
  /** The name of a built-in executor, or a name of your choice for `command` or `module`. */
  type: z.string().min(1).max(100),
  /** A program that implements the executor protocol, looked up in the runner's directory, then on PATH. */
  command: commandSchema.optional(),
  /** The capabilities of `command`. A module declares its own. */
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
  /** Maximum number of concurrent runs. */
  slots: z.number().int().min(1).max(1000).default(4),
  /** Runner variables passed to its runs, in addition to those the executor asks for. */
  env_from: z.array(variableName).default([]),
  /** Variables that agents may use as `${VAR}`. */
  allow_env: z.array(variableName).default([]),
  /** Directories that may contain a run's project_dir, in addition to the runner's own directory. */
  project_roots: z.array(z.string().min(1)).default([]),
  isolation: z.enum(["auto", ...isolationLevels]).optional(),
  leftovers: z.enum(["kill", "keep"]).optional(),
  home: z.enum(["user", "session"]).optional(),
  timeout_seconds: z.number().positive().optional(),
  idle_timeout_seconds: z.number().positive().optional(),
});
export type Profile = z.infer<typeof profileSchema>;
