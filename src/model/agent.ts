import { z } from "zod";
import { demandsSchema } from "./run.ts";

const agentNamePattern = /^[\p{L}\p{N}][\p{L}\p{N}._-]*$/u;

const limit = z.number().int().positive().optional();

/** Of each program that the run starts, but for the last two, which are of the run as a whole. */
const limitsSchema = z.strictObject({
  cpu_seconds: limit,
  memory_bytes: limit,
  processes: limit,
  open_files: limit,
  file_size_bytes: limit,
  /** Held in the run's own folders, and grown by in somebody else's. */
  disk_bytes: limit,
  files: limit,
});

/** A named definition. Unknown keys are errors, so that a misspelt one never passes in silence. */
export const agentSchema = z.strictObject({
  /** How it is addressed: in URLs, on the command line, and as `name@runner`. */
  name: z
    .string()
    .max(200)
    .regex(agentNamePattern, "a name is letters, digits, '.', '_' and '-', and begins with a letter or digit"),
  /** What people read; the `# Title` of a markdown agent. */
  title: z.string().min(1).max(200).optional(),
  description: z.string().nullable().default(null),
  type: z.enum(["procedural", "autonomous"]),
  executor: z.string().optional(),
  command: z
    .string()
    .regex(/\S/, "a command names a program")
    .regex(/^(?:[^"']|"[^"]*"|'[^']*')*$/, "a quote in the command is never closed")
    .nullable()
    .default(null),
  parameters_schema: z.record(z.string(), z.unknown()).optional(),
  output_schema: z.record(z.string(), z.unknown()).optional(),
  parameters_validation: z.enum(["strict", "executor"]).default("strict"),
  list_style: z.enum(["comma", "repeat", "json"]).default("comma"),
  system_prompt: z.string().optional(),
  /** Comes before the parameters in the first message; the sections of a markdown agent. */
  first_message: z.string().optional(),
  provider: z.string().optional(),
  model: z.string().optional(),
  permissions: z
    .strictObject({
      mode: z.enum(["default", "acceptEdits", "bypassPermissions", "plan"]).default("acceptEdits"),
      allowed_tools: z.array(z.string()).optional(),
      denied_tools: z.array(z.string()).optional(),
    })
    .optional(),
  mcp_servers: z.record(z.string(), z.unknown()).optional(),
  demands: z.strictObject(demandsSchema.shape).optional(),
  tags: z.array(z.string()).optional(),
  timeout_seconds: z.number().positive().optional(),
  idle_timeout_seconds: z.number().positive().optional(),
  limits: limitsSchema.optional(),
  max_attempts: z.number().int().min(1).default(1),
  max_turns: z.number().int().min(1).optional(),
  budget: z.strictObject({ cost_usd: z.number().positive() }).optional(),
  max_concurrent: z.number().int().min(1).optional(),
  workspace: z.enum(["in_place", "scratch"]).optional(),
  trust_project_settings: z.boolean().default(false),
  schedules: z.array(z.unknown()).optional(),
  on_finish: z.string().optional(),
});
export type Agent = z.infer<typeof agentSchema>;

/** What a title is addressed by: "Code Review!" is code-review. Empty where nothing of it can be kept. */
export function slugOf(title: string): string {
  return title
    .normalize("NFC")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}._]+/gu, "-")
    .replaceAll(/^[._-]+|-+$/g, "");
}
