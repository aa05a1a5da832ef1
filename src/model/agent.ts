import * as z from "zod";
import { demandsSchema } from "./demands.ts";
import { scheduleDefinitionSchema } from "./schedule.ts";
import { onFinishSchema } from "./on-finish.ts";
import { splitWords } from "./split-words.ts";
import { webhookNamesSchema } from "./webhook.ts";

const agentNamePattern = /^[\p{L}\p{N}][\p{L}\p{N}._-]*$/u;

/** A program and its own arguments, quoted as for a shell. */
export const commandSchema = z.string().check(({ value, issues }) => {
  const split = splitWords(value);
  const message = !split.ok ? split.problem : split.words[0] ? null : "a command names a program";
  if (message !== null) issues.push({ code: "custom", message, input: value });
});

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

const spend = {
  cost_usd: z.number().positive().optional(),
  tokens: z.number().int().positive().optional(),
};

/** Of one run; `per_day` is of all runs of the agent in one UTC day. */
const budgetSchema = z
  .strictObject({
    ...spend,
    turns: z.number().int().positive().optional(),
    per_day: z.strictObject(spend).optional(),
    /** What becomes of a run that has spent it: `park` unless it says otherwise. */
    when_spent: z.enum(["park", "fail"]).optional(),
  })
  .refine(
    ({ cost_usd, tokens, turns, per_day }) =>
      [cost_usd, tokens, turns, per_day?.cost_usd, per_day?.tokens].some((most) => most !== undefined),
    { message: "a budget limits cost_usd, tokens or turns" },
  );

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
  command: commandSchema.nullable().default(null),
  parameters_schema: z.record(z.string(), z.unknown()).optional(),
  output_schema: z.record(z.string(), z.unknown()).optional(),
  parameters_validation: z.enum(["strict", "executor"]).default("strict"),
  list_style: z.enum(["comma", "repeat", "json"]).default("comma"),
  /** Its own text; or, for Claude, the one of Claude Code with something added to it. */
  system_prompt: z
    .union([z.string(), z.strictObject({ preset: z.literal("claude_code"), append: z.string().optional() })])
    .optional(),
  /** Comes before the parameters in the first message; the sections of a markdown agent. */
  first_message: z.string().optional(),
  provider: z.string().optional(),
  model: z.string().optional(),
  /** The turns of the provider `scripted`; in an agent file, a path relative to that file. */
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
  /** Whether its questions go to people unless the request says otherwise; a run nobody attends is denied at once. */
  attended: z.boolean().optional(),
  /** A run that waits for an answer this long ends its processes, where its executor can continue later. */
  park_after_seconds: z.number().positive().optional(),
  /** A question that nobody answered for this long fails its run. */
  answer_within_seconds: z.number().positive().optional(),
  /** What becomes of a run that meets the usage limit of its account: `park` unless it says otherwise. */
  on_usage_limit: z.enum(["park", "fail"]).optional(),
  /** How long after its last use a session can be continued: seconds, or a text such as `30m`, `24h` or `7d`. */
  session: z
    .strictObject({
      timeout: z.union([
        z.number().positive(),
        z.string().regex(/^[1-9]\d{0,8}[smhd]$/, "a time is a number with s, m, h or d, such as 24h"),
      ]),
    })
    .optional(),
  /** Where it works, unless the request says so; as `project_dir` of a run. */
  working_directory: z.string().min(1).max(4096).optional(),
  max_concurrent: z.number().int().min(1).optional(),
  workspace: z.enum(["in_place", "scratch"]).optional(),
  trust_project_settings: z.boolean().default(false),
  /** When it runs by itself, see docs/schedules.md. */
  schedules: z.array(scheduleDefinitionSchema).max(100).optional(),
  /** Offered to MCP clients as a tool of its own: `run_NAME`. */
  expose: z.literal("tool", 'the only way to expose an agent is "tool"').optional(),
  on_finish: onFinishSchema.optional(),
  /** Webhooks with scope `named` that are notified of its runs. */
  webhooks: webhookNamesSchema.optional(),
});
export type Agent = z.infer<typeof agentSchema>;

const secondsIn: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** null: its sessions can be continued as long as they are kept. */
export function sessionTimeoutSeconds({ session }: Pick<Agent, "session">): number | null {
  if (session === undefined) return null;
  const { timeout } = session;
  return typeof timeout === "number" ? timeout : Number.parseInt(timeout, 10) * (secondsIn[timeout.slice(-1)] ?? 1);
}

/** What a title is addressed by: "Code Review!" is code-review. Empty where nothing of it can be kept. */
export function slugOf(title: string): string {
  return title
    .normalize("NFC")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}._]+/gu, "-")
    .replaceAll(/^[._-]+|-+$/g, "");
}
