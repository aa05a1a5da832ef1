import type { GetSlotTimes } from "../define/slot-times.ts";
import { checkTiming } from "../define/check-timing.ts";
import type { NewId } from "../model/ids.ts";
import type { Run } from "../model/run.ts";
import type {
  NewSchedule,
  Schedule,
  ScheduleChanges,
  ScheduleDefinition,
  StoredSchedule,
  Timing,
} from "../model/schedule.ts";
import type { Store } from "../model/store.ts";
import type { Vault } from "../model/vault.ts";
import type { Submitter } from "../submit/submit.ts";
import { refuse, buildSubmitFault, type SubmitFault } from "../submit/submit-fault.ts";
import { type Prepare, prepareScheduledRun, toRunRequest } from "./settle-slots.ts";
import { openTemplate, sealTemplate, omitSealed, wouldExposeSecrets } from "./template-secrets.ts";

export interface ScheduleEditorOptions {
  store: Pick<Store, "apply" | "read">;
  prepare: Prepare;
  getSlotTimes: GetSlotTimes;
  /** The clock of triggers, in milliseconds. */
  now: () => number;
  newId: NewId;
  vault?: Vault;
}

type EditResult<T> = ({ ok: true } & T) | { ok: false; fault: SubmitFault };
type NewDefinition = ScheduleDefinition & { agent_name: string };

/** The operations users perform on schedules. */
export interface ScheduleEditor {
  show(schedule: StoredSchedule): Schedule;
  create(definition: NewDefinition, submitter: Submitter): Promise<EditResult<{ schedule: Schedule }>>;
  change(schedule: StoredSchedule, changes: ScheduleChanges): Promise<EditResult<{ schedule: Schedule }>>;
  remove(schedule: StoredSchedule): Promise<SubmitFault | null>;
  run(schedule: StoredSchedule): Promise<EditResult<{ run: Run }>>;
  preview(timing: Timing, from: number | null, count: number): EditResult<{ next: string[] }>;
}

const nextSlotCount = 5;

export function createScheduleEditor({
  store,
  prepare,
  getSlotTimes,
  now,
  newId,
  vault,
}: ScheduleEditorOptions): ScheduleEditor {
  return {
    show,
    async create({ agent_name, ...definition }, submitter) {
      const checked = await check(agent_name, definition, submitter);
      if (!checked.ok) return checked;
      const stored = sealTemplate(agent_name, definition, checked.schema, vault);
      const base = { schedule_id: newId(), agent_name, created_by: submitter.subject, source: "api" as const };
      return put({ ...base, definition: stored, ...computeFirstTimes(definition) }, definition.enabled);
    },
    async change(schedule, changes) {
      const { enabled = schedule.enabled, ...others } = changes;
      if (schedule.source !== "api" && Object.keys(others).length > 0)
        return { ok: false, fault: toDefinedByAgentFault(schedule, Object.keys(others)) };
      const { agent_name } = schedule;
      const opened = openTemplate(agent_name, schedule.definition, vault);
      const definition = mergeChanges(opened, schedule.source === "api" ? changes : {});
      const submitter: Submitter = { subject: schedule.created_by, role: "user" };
      // A disabled schedule may be invalid.
      const checked = schedule.source === "api" ? await check(agent_name, definition, submitter) : null;
      if (enabled && checked?.ok === false) return checked;
      const changesTiming = (["cron", "every", "timezone"] as const).some((key) => changes[key] !== undefined);
      const timingFault = changesTiming ? findTimingFault(definition) : null;
      if (timingFault !== null) return { ok: false, fault: timingFault };
      const times = changesTiming ? computeFirstTimes(definition) : {};
      const schema = checked?.ok === true ? checked.schema : undefined;
      const hasNewInput = changes.parameters !== undefined || changes.prompt !== undefined;
      const stored = hasNewInput
        ? sealTemplate(agent_name, definition, schema, vault)
        : mergeChanges(schedule.definition, schedule.source === "api" ? changes : {});
      if (wouldExposeSecrets(schedule.definition, stored, changes))
        return refuse(
          409,
          "DROVER-API-030",
          "The agent no longer declares which of the schedule's parameters are secret.",
          [{ path: "body.parameters", message: "must be passed again" }],
          "Include the parameters in the change, and the prompt if the schedule has one.",
        );
      return put({ ...schedule, definition: stored, ...times }, enabled, schedule.rev);
    },
    async remove(schedule) {
      if (schedule.source !== "api" && (await isDefined(schedule))) return toDefinedByAgentFault(schedule, []);
      const [deleted] = await store.apply([{ op: "delete_schedule", schedule_id: schedule.schedule_id }]);
      return deleted.ok ? null : notFound();
    },
    run,
    preview(timing, from, count) {
      const fault = findTimingFault(timing);
      if (fault !== null) return { ok: false, fault };
      return { ok: true, next: listNextSlots(timing, now(), from ?? now(), count) };
    },
  };

  function show(schedule: StoredSchedule): Schedule {
    const { definition: stored, enabled, anchor, due_at, rev: _rev, ...rest } = schedule;
    const definition = omitSealed(stored);
    const { cron = null, every = null, prompt = null, attended = null } = definition;
    // The slot that is due comes first, even if it is late.
    const laterSlots =
      due_at === null ? [] : listNextSlots(definition, Date.parse(anchor), Date.parse(due_at), nextSlotCount - 1);
    const next = due_at === null || !enabled ? [] : [due_at, ...laterSlots];
    return { ...rest, ...definition, cron, every, prompt, attended, enabled, next };
  }

  function listNextSlots(timing: Timing, anchor: number, from: number, count: number): string[] {
    const times = getSlotTimes(timing, anchor);
    const next: string[] = [];
    for (let at = times.next(from); at !== null && next.length < count; at = times.next(at))
      next.push(new Date(at).toISOString());
    return next;
  }

  function computeFirstTimes(timing: Timing): Pick<NewSchedule, "anchor" | "due_at"> {
    const anchor = now();
    return { anchor: new Date(anchor).toISOString(), due_at: listNextSlots(timing, anchor, anchor, 1)[0] ?? null };
  }

  /** Checks the schedule as if one of its runs were submitted: agent, parameters, demands. */
  async function check(
    agent_name: string,
    definition: ScheduleDefinition,
    submitter: Submitter,
  ): Promise<EditResult<{ schema: object | undefined }>> {
    const timingFault = findTimingFault(definition);
    if (timingFault !== null) return { ok: false, fault: timingFault };
    const prepared = await prepare(toRunRequest(agent_name, definition, "schedule"), submitter);
    if (!prepared.ok) return prepared;
    const { agent } = prepared.create;
    if (definition.resume_session && agent?.type === "procedural")
      return refuse(
        400,
        "DROVER-SUB-002",
        "Procedural agents cannot resume a session.",
        [{ path: "body.resume_session", message: "not supported by procedural agents" }],
        "Omit resume_session.",
      );
    return { ok: true, schema: agent?.parameters_schema };
  }

  function findTimingFault(timing: Timing): SubmitFault | null {
    const faults = checkTiming(timing, now());
    const [first] = faults;
    if (first === undefined) return null;
    const paths = faults.map(({ path, message }) => ({ path: `body.${path}`, message }));
    return buildSubmitFault(400, "DROVER-SCH-001", `The schedule is not valid: ${first.message}`, paths, first.next);
  }

  async function put(
    schedule: NewSchedule,
    enabled: boolean,
    rev?: number,
  ): Promise<EditResult<{ schedule: Schedule }>> {
    const [stored] = await store.apply([
      { op: "put_schedule", schedule: { ...schedule, enabled }, ...(rev === undefined ? {} : { rev }) },
    ]);
    if (!stored.ok) return { ok: false, fault: toConflictFault(stored.conflict, schedule) };
    const saved = await store.read.schedule(schedule.schedule_id);
    return saved === null ? { ok: false, fault: notFound() } : { ok: true, schedule: show(saved) };
  }

  /** Runs the schedule now. The slot is the current time of the trigger clock. */
  async function run(schedule: StoredSchedule): Promise<EditResult<{ run: Run }>> {
    const { schedule_id } = schedule;
    const prepared = await prepareScheduledRun(schedule, "manual", prepare);
    if (!prepared.ok) return prepared;
    const { create } = prepared;
    for (let at = now(); ; at += 1) {
      const slot = new Date(at).toISOString();
      const [fired] = await store.apply([
        { op: "fire_schedule", schedule_id, skipped: [], run: { slot, create }, at: slot },
      ]);
      if (!fired.ok)
        return fired.conflict === "session" ? run({ ...schedule, session_id: null }) : { ok: false, fault: notFound() };
      // Otherwise another manual run has this millisecond as its slot, so try the next one.
      if (fired.run_id !== null) return { ok: true, run: create.run };
    }
  }

  /** Whether the agent still defines this schedule. The row stays after the agent was removed or changed. */
  async function isDefined({ agent_name, definition, created_by }: StoredSchedule): Promise<boolean> {
    const prepared = await prepare(toRunRequest(agent_name, definition, "schedule"), {
      subject: created_by,
      role: "user",
    });
    const agent = prepared.ok ? prepared.create.agent : null;
    if (!prepared.ok && prepared.fault.code !== "DROVER-SUB-001") return true;
    return agent?.schedules?.some(({ name }) => name === definition.name) ?? false;
  }
}

function mergeChanges(definition: ScheduleDefinition, changes: ScheduleChanges): ScheduleDefinition {
  const { cron, every, ...rest } = definition;
  const timing = changes.cron ?? changes.every ?? null;
  const all = { ...rest, ...(timing === null ? { cron, every } : {}), ...changes };
  // null removes a key. Setting `cron` removes `every`, and the other way round.
  return Object.fromEntries(
    Object.entries(all).filter(([, value]) => value !== undefined && value !== null),
  ) as ScheduleDefinition;
}

function toDefinedByAgentFault(
  { agent_name, source, definition }: StoredSchedule,
  keys: readonly string[],
): SubmitFault {
  const where = source === "file" ? "the agent's file" : `the agent: PUT /agents/${agent_name}`;
  return buildSubmitFault(
    409,
    "DROVER-SCH-002",
    `The agent ${agent_name} defines the schedule ${definition.name}.`,
    keys.map((key) => ({ path: `body.${key}`, message: "defined by the agent" })),
    `Change ${where}; or disable the schedule: drover schedules disable ${definition.name}`,
  );
}

function toConflictFault(
  conflict: "not_found" | "changed" | "name_taken" | "session",
  schedule: NewSchedule,
): SubmitFault {
  const { agent_name, definition } = schedule;
  if (conflict === "name_taken")
    return buildSubmitFault(
      409,
      "DROVER-SCH-003",
      `The agent ${agent_name} already has a schedule ${definition.name}.`,
      [{ path: "body.name", message: "taken" }],
      "Use another name, or change the existing schedule.",
    );
  if (conflict === "not_found") return notFound();
  const next = "Read it again, then repeat the change.";
  return buildSubmitFault(409, "DROVER-SCH-003", "Another user changed the schedule at the same time.", [], next);
}

function notFound(): SubmitFault {
  return buildSubmitFault(404, "DROVER-API-014", "There is no such schedule.", [
    { path: "path.schedule_id", message: "unknown" },
  ]);
}
