import * as z from "zod";
import { type Config, defaultConfig, maxFileMb, maxOutputKb } from "./config.ts";
import { environmentModes, isolationLevels } from "./process.ts";

const { execution, files, retention } = defaultConfig;
const days = z.number().positive();

/** Unknown keys are errors at every level. The defaults come from `defaultConfig`. */
export const configSchema: z.ZodType<Config> = z.strictObject({
  execution: z
    .strictObject({
      default_timeout_seconds: z.number().positive().default(execution.default_timeout_seconds),
      max_output_kb: z.number().int().positive().max(maxOutputKb).default(execution.max_output_kb),
      output_limit: z.enum(["truncate", "fail"]).default(execution.output_limit),
      use_shell: z.union([z.literal("auto"), z.boolean()]).default(execution.use_shell),
      environment: z
        .strictObject({
          mode: z.enum(environmentModes).default(execution.environment.mode),
          allow: z.array(z.string()).default(execution.environment.allow),
          deny: z.array(z.string()).default(execution.environment.deny),
        })
        .prefault({}),
      audit: z
        .strictObject({
          enabled: z.boolean().default(execution.audit.enabled),
          retention_days: days.default(execution.audit.retention_days),
        })
        .prefault({}),
    })
    .prefault({}),
  files: z
    .strictObject({ max_file_mb: z.number().int().positive().max(maxFileMb).default(files.max_file_mb) })
    .prefault({}),
  retention: z
    .strictObject({
      runs_days: days.default(retention.runs_days),
      events_days: days.default(retention.events_days),
      files_days: days.default(retention.files_days),
      sessions_days: days.default(retention.sessions_days),
    })
    .prefault({}),
  isolation: z.enum(["auto", ...isolationLevels]).default(defaultConfig.isolation),
  agents: z.string().min(1).nullable().default(defaultConfig.agents),
  agents_auto_accept: z.boolean().default(defaultConfig.agents_auto_accept),
  profiles: z.string().min(1).nullable().default(defaultConfig.profiles),
  provider: z.string().min(1).nullable().default(defaultConfig.provider),
  public_urls: z.array(z.string()).default(defaultConfig.public_urls),
  webhooks: z.strictObject({ allow: z.array(z.string().min(1)).default(defaultConfig.webhooks.allow) }).prefault({}),
});
