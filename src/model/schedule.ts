import * as z from "zod";
import { failureReasons, runStatuses } from "./states.ts";

export const overlapPolicies = ["skip", "queue", "cancel_previous", "allow"] as const;
export const catchUpPolicies = ["none", "one"] as const;
/** Where it is defined: in an agent file, in an agent put by the API, or on its own. */
export const scheduleSources = ["file", "agent", "api"] as const;
export type ScheduleSource = (typeof scheduleSources)[number];

/** Why a slot has no run. A closed list. */
export const skipReasons = ["overlap", "queue_full", "disabled", "missed", "agent_gone", "refused"] as const;
export type SkipReason = (typeof skipReasons)[number];

const namePattern = /^[\p{L}\p{N}][\p{L}\p{N}._-]*$/u;

/** A cron expression, or an interval; whether it ever comes is for src/define/fire-times.ts to say. */
const timingShape = {
  cron: z.string().min(1).max(200).optional(),
  /** Such as `15m`, `2h` or `1d`. */
  every: z
    .string()
    .regex(/^[1-9]\d{0,8}[smhd]$/, "an interval is a number with s, m, h or d, such as 15m")
    .optional(),
  /** Of the cron expression: an IANA name such as Europe/Berlin. */
  timezone: z.string().min(1).max(100),
};

/** Without the defaults: what a change may give. */
const bareShape = {
  name: z
    .string()
    .max(100)
    .regex(namePattern, "a name is letters, digits, '.', '_' and '-', and begins with a letter or digit"),
  ...timingShape,
  prompt: z.string().max(1_000_000).optional(),
  parameters: z.record(z.string(), z.unknown()),
  enabled: z.boolean(),
  /** What happens when the last run has not ended: skip the slot, wait, stop that run, or run beside it. */
  overlap: z.enum(overlapPolicies),
  /** Whether the last of the slots that were missed is made up for. */
  catch_up: z.enum(catchUpPolicies),
  /** Each run continues the session of the one before. */
  resume_session: z.boolean(),
  /** Whether questions go to people; what the agent says where it is left out. */
  attended: z.boolean().optional(),
};

const definitionShape = {
  ...bareShape,
  timezone: bareShape.timezone.default("UTC"),
  parameters: bareShape.parameters.default({}),
  enabled: bareShape.enabled.default(true),
  overlap: bareShape.overlap.default("skip"),
  catch_up: bareShape.catch_up.default("none"),
  resume_session: bareShape.resume_session.default(false),
};

export const scheduleDefinitionSchema = z.strictObject(definitionShape).refine(hasOneTiming, oneTiming());
export type ScheduleDefinition = z.infer<typeof scheduleDefinitionSchema> & {
  /** In the record: what it was given with, encrypted, where its parameters or prompt are redacted. */
  sealed?: string;
};
export type Timing = Pick<ScheduleDefinition, "cron" | "every" | "timezone">;

export const newScheduleSchema = z
  .strictObject({ agent_name: z.string().min(1).max(400), ...definitionShape })
  .refine(hasOneTiming, oneTiming());

/** What is left out stays as it is; null takes it away. `cron` takes the place of `every`, and the other way round. */
export const scheduleChangesSchema = z
  .strictObject({ ...bareShape, prompt: bareShape.prompt.nullable(), attended: bareShape.attended.nullable() })
  .partial()
  .refine((changes) => Object.keys(changes).length > 0, { message: "give at least one key to change" })
  .refine(({ cron, every }) => cron === undefined || every === undefined, oneTiming());
export type ScheduleChanges = z.infer<typeof scheduleChangesSchema>;

export const previewSchema = z
  .strictObject({
    ...timingShape,
    timezone: definitionShape.timezone,
    from: z.iso.datetime({ offset: true }).optional().describe("The slots after it; after now unless given"),
    count: z.int().min(1).max(50).default(5),
  })
  .refine(hasOneTiming, oneTiming());

function hasOneTiming({ cron, every }: { cron?: string | undefined; every?: string | undefined }): boolean {
  return (cron === undefined) !== (every === undefined);
}

function oneTiming(): { message: string } {
  return { message: "a schedule has either cron or every" };
}

/** What became of one slot. `fired` is not success: `run_status` says how its run is doing. */
export const slotSchema = z.object({
  slot: z.string(),
  outcome: z.enum(["fired", "skipped"]),
  /** null where it was fired. */
  why: z.enum(skipReasons).nullable(),
  /** For people. */
  detail: z.string().nullable(),
  /** Somebody asked for it, outside of its times. */
  manual: z.boolean(),
  /** When it was decided. */
  at: z.string(),
  run_id: z.string().nullable(),
  /** As it is now; null where there is no run, or retention has removed it. */
  run_status: z.enum(runStatuses).nullable(),
  run_reason: z.enum(failureReasons).nullable(),
});
export type Slot = z.infer<typeof slotSchema>;

/** A schedule as it is kept. */
export interface StoredSchedule {
  schedule_id: string;
  agent_name: string;
  created_by: string;
  source: ScheduleSource;
  definition: ScheduleDefinition;
  /** `definition.enabled`, unless somebody has said otherwise since. */
  enabled: boolean;
  /** `every` counts from here. */
  anchor: string;
  /** The next slot; null where none comes. */
  due_at: string | null;
  /** Grows with each change of the schedule. */
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
  /** Of runs that continue each other. */
  session_id: z.string().nullable(),
  next: z.array(z.string()).describe("The next five slots, in UTC; none while the schedule is disabled"),
  last: slotSchema.nullable().describe("The newest line of its history"),
  last_run_id: z.string().nullable(),
  created_at: z.string(),
  updated_at: z.string(),
});
export type Schedule = z.infer<typeof scheduleSchema>;
