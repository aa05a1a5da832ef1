import type { DefinitionFault } from "../model/definition-fault.ts";
import { scheduleDefinitionSchema } from "../model/schedule.ts";
import type { Origin } from "./check-shape.ts";
import { checkTiming } from "./check-timing.ts";

/** Faults of an agent's schedules beyond their shape. `checkShape` reports schedules of the wrong shape. */
export function checkSchedules(agent: Record<string, unknown>, { file, findLine }: Origin): DefinitionFault[] {
  const { schedules, type } = agent;
  if (!Array.isArray(schedules)) return [];
  const names = new Set<string>();
  return schedules.flatMap((schedule: unknown, index): DefinitionFault[] => {
    const createFault = (key: string, message: string, next: string): DefinitionFault => {
      const path = ["schedules", index, key];
      return { code: "DROVER-SCH-001", file, line: findLine?.(path) ?? null, path: path.join("."), message, next };
    };
    const parsed = scheduleDefinitionSchema.safeParse(schedule);
    if (!parsed.success) return [];
    const { name, resume_session } = parsed.data;
    const isDuplicate = names.has(name);
    names.add(name);
    return [
      ...(isDuplicate
        ? [createFault("name", `the schedule name ${name} is used twice`, "Give each schedule a unique name.")]
        : []),
      ...(resume_session && type === "procedural"
        ? [createFault("resume_session", "a procedural agent has no session to resume", "Remove resume_session.")]
        : []),
      ...checkTiming(parsed.data, Date.now()).map(({ path, message, next }) => createFault(path, message, next)),
    ];
  });
}
