import * as z from "zod";
import { demandsSchema } from "./demands.ts";
import { scheduleDefinitionSchema } from "./schedule.ts";
import { onFinishSchema } from "./on-finish.ts";
import { splitWords } from "./split-words.ts";
import { webhookNamesSchema } from "./webhook.ts";

const agentNamePattern = /^[\p{L}\p{N}][\p{L}\p{N}._-]*$/u;

/** A program and its arguments, with shell quoting. */
export const commandSchema = z.string().check(({ value, issues }) => {
  const split = splitWords(value);
  const message = !split.ok ? split.problem : split.words[0] ? null : "a command must start with a program";
  if (message !== null) issues.push({ code: "custom", message, input: value });
});

const limit = z.number().int().positive().optional();

/** Limits for each program that the run starts, except `disk_bytes` and `files`, which cover the whole run. */
const limitsSchema = z.strictObject({
  cpu_seconds: limit,
  memory_bytes: limit,
  processes: limit,
  open_files: limit,
  file_size_bytes: limit,
  /** Counts all content of the run's own directories, but only the growth of directories it shares. */
  disk_bytes: limit,
  files: limit,
});

const spendingLimits = {
  cost_usd: z.number().positive().optional(),
  tokens: z.number().int().positive().optional(),
};

/** The spending limits of one run. `per_day` covers all runs of the agent in one UTC day. */
const budgetSchema = z
  .strictObject({
    ...spendingLimits,
    turns: z.number().int().positive().optional(),
    per_day: z.strictObject(spendingLimits).optional(),
    /** What happens to a run that has used up its budget. The default is `park`. */
    when_spent: z.enum(["park", "fail"]).optional(),
  })
  .refine(
    ({ cost_usd, tokens, turns, per_day }) =>
      [cost_usd, tokens, turns, per_day?.cost_usd, per_day?.tokens].some((max) => max !== undefined),
    { message: "a budget must set at least one of cost_usd, tokens, turns or a per_day limit" },
  );

/** A named agent definition. Unknown keys are errors, so that a typo is never ignored. */
export const agentSchema = z.strictObject({
  /** Identifies the agent in URLs, on the command line, and as `name@runner`. */
  name: z
    .string()
    .max(200)
    .regex(agentNamePattern, "a name consists of letters, digits, '.', '_' and '-', and starts with a letter or digit"),
  /** The display name. In a markdown agent this is its `# Title`. */
  title: z.string().min(1).max(200).optional(),
  description: z.string().nullable().default(null),
  type: z.enum(["procedural", "autonomous"]),
  executor: z.string().optional(),
  command: commandSchema.nullable().default(null),
  parameters_schema: z.record(z.string(), z.unknown()).optional(),
  output_schema: z.record(z.string(), z.unknown()).optional(),
  parameters_validation: z.enum(["strict", "executor"]).default("strict"),
  list_style: z.enum(["comma", "repeat", "json"]).default("comma"),
  /** Plain text or, for Claude, the Claude Code prompt with an optional addition. */
  system_prompt: z
    .union([z.string(), z.strictObject({ preset: z.literal("claude_code"), append: z.string().optional() })])
    .optional(),
  /**
   * Starts the first message, before the run's prompt and parameters. In a markdown agent, it consists of the agent's
   * sections.
   */
  first_message: z.string().optional(),
  provider: z.string().optional(),
  model: z.string().optional(),
  /** The turns for the `scripted` provider. In an agent file, this is a path relative to that file. */
  script: z.string().min(1).optional(),
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
  budget: budgetSchema.optional(),
  /** Whether questions go to people; a request can override it. The questions of an unattended run are denied at once. */
  attended: z.boolean().optional(),
  /** After waiting this long for an answer, a run stops its processes, if its executor can continue later. */
  park_after_seconds: z.number().positive().optional(),
  /** A question that stays unanswered for this long fails its run. */
  answer_within_seconds: z.number().positive().optional(),
  /** What happens to a run that reaches the usage limit of its account. The default is `park`. */
  on_usage_limit: z.enum(["park", "fail"]).optional(),
  /** How long after its last use a session can be continued: seconds, or a duration such as `30m`, `24h` or `7d`. */
  session: z
    .strictObject({
      timeout: z.union([
        z.number().positive(),
        z.string().regex(/^[1-9]\d{0,8}[smhd]$/, "a duration is a number followed by s, m, h or d, such as 24h"),
      ]),
    })
    .optional(),
  /** The default for a run's `project_dir`. */
  working_directory: z.string().min(1).max(4096).optional(),
  max_concurrent: z.number().int().min(1).optional(),
  workspace: z.enum(["in_place", "scratch"]).optional(),
  trust_project_settings: z.boolean().default(false),
  /** See docs/schedules.md. */
  schedules: z.array(scheduleDefinitionSchema).max(100).optional(),
  /** `tool` offers the agent to MCP clients as the tool `run_NAME`. */
  expose: z.literal("tool", 'the only way to expose an agent is "tool"').optional(),
  on_finish: onFinishSchema.optional(),
  /** Webhooks with scope `named` to notify about the agent's runs. */
  webhooks: webhookNamesSchema.optional(),
});
export type Agent = z.infer<typeof agentSchema>;

const secondsIn: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** Returns null if sessions never time out. */
export function getSessionTimeoutSeconds({ session }: Pick<Agent, "session">): number | null {
  if (session === undefined) return null;
  const { timeout } = session;
  return typeof timeout === "number" ? timeout : Number.parseInt(timeout, 10) * (secondsIn[timeout.slice(-1)] ?? 1);
}

/** Turns a title into an agent name: "Code Review!" becomes `code-review`. The result may be empty. */
export function slugify(title: string): string {
  return title
    .normalize("NFC")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}._]+/gu, "-")
    .replaceAll(/^[._-]+|-+$/g, "");
}
