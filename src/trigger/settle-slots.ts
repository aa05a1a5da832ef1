import type { GetSlotTimes } from "../define/slot-times.ts";
import { HostError } from "../model/errors.ts";
import type { RunRequest } from "../model/run-request.ts";
import type { ScheduleDefinition, SkipReason, StoredSchedule } from "../model/schedule.ts";
import type { FireSchedule } from "../model/schedule-ops.ts";
import type { CreateRun } from "../model/store.ts";
import type { PrepareResult, Submitter } from "../submit/submit.ts";
import type { SubmitFault } from "../submit/submit-fault.ts";
import { planSlots } from "./plan-slots.ts";

export type Prepare = (request: RunRequest, submitter: Submitter) => Promise<PrepareResult>;

export interface SettleSlotsDeps {
  prepare: Prepare;
  getSlotTimes: GetSlotTimes;
  onError: (error: unknown) => void;
}

type Skip = { why: SkipReason; detail: string | null };

/** Builds the operation that settles the due slots of a schedule. Writes nothing. */
export async function buildSettleOp(
  schedule: StoredSchedule,
  now: number,
  deps: SettleSlotsDeps,
): Promise<FireSchedule> {
  const { schedule_id, definition, enabled, rev, due_at, anchor } = schedule;
  const at = new Date(now).toISOString();
  const times = deps.getSlotTimes(definition, Date.parse(anchor));
  const { missed, newest, next } = planSlots(Date.parse(due_at ?? at), times, now);
  const skip: Skip = enabled
    ? { why: "missed", detail: `No coordinator started the run in time; recorded at ${at}.` }
    : disabledSkip;
  const operation = {
    op: "fire_schedule" as const,
    schedule_id,
    due: { rev, at: due_at ?? at, next: next === null ? null : new Date(next).toISOString() },
    skipped: missed.map((slot) => ({ slot: new Date(slot).toISOString(), ...skip })),
    at,
  };
  if (newest === null) return operation;
  const slot = new Date(newest.slot).toISOString();
  const shouldRun = enabled && (newest.isInTime || definition.catch_up === "one");
  const result = shouldRun ? await prepareRunOrSkip(schedule, "schedule", deps) : skip;
  return "create" in result
    ? { ...operation, run: { slot, create: result.create } }
    : { ...operation, skipped: [...operation.skipped, { slot, ...result }] };
}

const disabledSkip: Skip = { why: "disabled", detail: null };

/** An error that does not come from the record affects only this schedule: the slot is skipped, and other schedules still run. */
async function prepareRunOrSkip(
  schedule: StoredSchedule,
  trigger: "schedule" | "manual",
  deps: SettleSlotsDeps,
): Promise<{ create: CreateRun } | Skip> {
  try {
    const prepared = await prepareScheduledRun(schedule, trigger, deps.prepare);
    return prepared.ok ? prepared : toSkip(prepared.fault);
  } catch (error) {
    if (error instanceof HostError) throw error;
    deps.onError(error);
    return { why: "refused", detail: `Preparing the run failed: ${String(error)}` };
  }
}

/** Continues the session of the previous run if the schedule has resume_session and the session can be continued. Otherwise starts a new session. */
export async function prepareScheduledRun(
  schedule: StoredSchedule,
  trigger: "schedule" | "manual",
  prepare: Prepare,
): Promise<PrepareResult> {
  const { agent_name, created_by, definition, session_id } = schedule;
  const submitter: Submitter = { subject: created_by, role: "user" };
  const request = toRunRequest(agent_name, definition, trigger);
  if (!definition.resume_session || session_id === null) return prepare(request, submitter);
  const resumed = await prepare({ ...request, mode: "resume", session_id }, submitter);
  return !resumed.ok && sessionFaultCodes.has(resumed.fault.code) ? prepare(request, submitter) : resumed;
}

/** The codes of a session that cannot be continued, because it was deleted, has expired or belongs to another agent. */
const sessionFaultCodes: ReadonlySet<string> = new Set(["DROVER-SUB-003", "DROVER-SUB-006"]);

export function toRunRequest(
  agent_name: string,
  { name, prompt, parameters, attended, sealed }: ScheduleDefinition,
  trigger_type: "schedule" | "manual",
): RunRequest {
  return {
    agent_name,
    parameters,
    mode: "start",
    priority: 0,
    trigger_type,
    schedule: name,
    ...(prompt === undefined ? {} : { prompt }),
    ...(attended === undefined ? {} : { attended }),
    ...(sealed === undefined ? {} : { sealed }),
  };
}

function toSkip({ code, message, faults }: SubmitFault): Skip {
  const details = faults.map((fault) => `${fault.path}: ${fault.message}`).join("; ");
  const detail = `${code}: ${message}${details === "" ? "" : ` (${details})`}`;
  return { why: code === "DROVER-SUB-001" ? "agent_gone" : "refused", detail: detail.slice(0, 2000) };
}
