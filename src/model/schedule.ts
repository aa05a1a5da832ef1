import * as z from "zod";
import { failureReasons, runStatuses } from "./states.ts";

export const overlapPolicies = ["skip", "queue", "cancel_previous", "allow"] as const;
export const catchUpPolicies = ["none", "one"] as const;
/** Where a schedule is defined: in an agent file, in an agent created through the API, or on its own. */
export const scheduleSources = ["file", "agent", "api"] as const;
export type ScheduleSource = (typeof scheduleSources)[number];

/** Why a slot has no run. */
export const skipReasons = ["overlap", "queue_full", "disabled", "missed", "agent_gone", "refused"] as const;
export type SkipReason = (typeof skipReasons)[number];

const namePattern = /^[\p{L}\p{N}][\p{L}\p{N}._-]*$/u;

/** A cron expression or an interval. src/define/slot-times.ts checks whether it is ever due. */
const timingShape = {
  cron: z.string().min(1).max(200).optional(),
  /** Such as `15m`, `2h` or `1d`. */
  every: z
    .string()
    .regex(/^[1-9]\d{0,8}[smhd]$/, "an interval is a number followed by s, m, h or d, such as 15m")
    .optional(),
  /** For the cron expression: an IANA name such as Europe/Berlin. */
  timezone: z.string().min(1).max(100),
};

/** The fields without defaults, as in a change request. */
const bareShape = {
  name: z
    .string()
    .max(100)
    .regex(namePattern, "a name consists of letters, digits, '.', '_' and '-', and starts with a letter or digit"),
  ...timingShape,
  prompt: z.string().max(1_000_000).optional(),
  parameters: z.record(z.string(), z.unknown()),
  enabled: z.boolean(),
  /** What happens if the previous run has not ended: skip the slot, queue it, stop that run, or run both. */
  overlap: z.enum(overlapPolicies),
  /** Whether the last missed slot still gets a run. */
  catch_up: z.enum(catchUpPolicies),
  /** Each run continues the session of the previous run. */
  resume_session: z.boolean(),
  /** Whether questions go to people. Defaults to the agent's setting. */
  attended: z.boolean().optional(),
};

const oneTimingFault = { message: "a schedule has either cron or every" };

const definitionShape = {
  ...bareShape,
  timezone: bareShape.timezone.default("UTC"),
  parameters: bareShape.parameters.default({}),
  enabled: bareShape.enabled.default(true),
  overlap: bareShape.overlap.default("skip"),
  catch_up: bareShape.catch_up.default("none"),
  resume_session: bareShape.resume_session.default(false),
};

export const scheduleDefinitionSchema = z.strictObject(definitionShape).refine(hasOneTiming, oneTimingFault);
export type ScheduleDefinition = z.infer<typeof scheduleDefinitionSchema> & {
  /** The original parameters and prompt, encrypted, if those stored here are redacted. */
  sealed?: string;
};
export type Timing = Pick<ScheduleDefinition, "cron" | "every" | "timezone">;

export const newScheduleSchema = z
  .strictObject({ agent_name: z.string().min(1).max(400), ...definitionShape })
  .refine(hasOneTiming, oneTimingFault);

/** Omitted keys keep their value, and null removes one. `cron` replaces `every`, and vice versa. */
export const scheduleChangesSchema = z
  .strictObject({ ...bareShape, prompt: bareShape.prompt.nullable(), attended: bareShape.attended.nullable() })
  .partial()
  .refine((changes) => Object.keys(changes).length > 0, { message: "give at least one key to change" })
  .refine(({ cron, every }) => cron === undefined || every === undefined, oneTimingFault);
export type ScheduleChanges = z.infer<typeof scheduleChangesSchema>;

export const previewSchema = z
  .strictObject({
    ...timingShape,
    timezone: definitionShape.timezone,
    from: z.iso.datetime({ offset: true }).optional().describe("List the slots after this time; defaults to now"),
    count: z.int().min(1).max(50).default(5),
  })
  .refine(hasOneTiming, oneTimingFault);

function hasOneTiming({ cron, every }: { cron?: string | undefined; every?: string | undefined }): boolean {
  return (cron === undefined) !== (every === undefined);
}

/** The outcome of one slot. `fired` does not mean success: `run_status` is the state of its run. */
export const slotSchema = z.object({
  slot: z.string(),
  outcome: z.enum(["fired", "skipped"]),
  /** null if the slot was fired. */
  why: z.enum(skipReasons).nullable(),
  /** An explanation for people. */
  detail: z.string().nullable(),
  /** A person started it outside the schedule's times. */
  manual: z.boolean(),
  /** When the slot was settled. */
  at: z.string(),
  run_id: z.string().nullable(),
  /** The run's current status. null if there is no run or retention removed it. */
  run_status: z.enum(runStatuses).nullable(),
  run_reason: z.enum(failureReasons).nullable(),
});
export type Slot = z.infer<typeof slotSchema>;

/** A schedule as stored. */
export interface StoredSchedule {
  schedule_id: string;
  agent_name: string;
  created_by: string;
  source: ScheduleSource;
  definition: ScheduleDefinition;
  /** `definition.enabled`, unless a person has changed it since. */
  enabled: boolean;
  /** The start of the intervals of `every`. */
  anchor: string;
  /** The next slot, or null if there is none. */
  due_at: string | null;
  /** Increases with each change of the schedule. */
  rev: number;
  last_run_id: string | null;
  session_id: string | null;
  created_at: string;
  updated_at: string;
  last: Slot | null;
}

export type NewSchedule = Pick<
  StoredSchedule,
  "schedule_id" | "agent_name" | "created_by" | "source" | "definition" | "anchor" | "due_at"
>;

/** A schedule as the API shows it. */
export const scheduleSchema = z.object({
  schedule_id: z.string(),
  agent_name: z.string(),
  created_by: z.string(),
  source: z.enum(scheduleSources),
  ...bareShape,
  cron: z.string().nullable(),
  every: z.string().nullable(),
  prompt: z.string().nullable(),
  attended: z.boolean().nullable(),
  /** The session that its runs continue, with `resume_session`. */
  session_id: z.string().nullable(),
  next: z.array(z.string()).describe("The next five slots, in UTC; none while the schedule is disabled"),
  last: slotSchema.nullable().describe("The most recent slot of its history"),
  last_run_id: z.string().nullable(),
  created_at: z.string(),
  updated_at: z.string(),
});
export type Schedule = z.infer<typeof scheduleSchema>;
