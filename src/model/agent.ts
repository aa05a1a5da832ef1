import { z } from "zod";
import { demandsSchema } from "./run.ts";

/** A named definition. Unknown keys are errors, so that a misspelt one never passes in silence. */
export const agentSchema = z.strictObject({
  name: z.string().min(1).max(200),
  description: z.string().nullable().default(null),
  type: z.enum(["procedural", "autonomous"]),
  executor: z.string().optional(),
  command: z.string().nullable().default(null),
  parameters_schema: z.record(z.string(), z.unknown()).optional(),
  output_schema: z.record(z.string(), z.unknown()).optional(),
  parameters_validation: z.enum(["strict", "executor"]).default("strict"),
  list_style: z.enum(["comma", "repeat", "json"]).default("comma"),
  system_prompt: z.string().optional(),
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
  demands: demandsSchema.optional(),
  tags: z.array(z.string()).optional(),
  timeout_seconds: z.number().positive().optional(),
  idle_timeout_seconds: z.number().positive().optional(),
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
