import type { FireTimes } from "../define/fire-times.ts";

/** How late a slot may fire. After that it counts as missed. */
export const graceMs = 60_000;
/** Slots decided by one operation. */
const maxSlots = 500;

export interface SlotPlan {
  /** Slots that are too old, because a newer one is due too. */
  missed: number[];
  /** The newest due slot; null if there are more slots than can be decided at once. */
  newest: { slot: number; inTime: boolean } | null;
  /** The first slot after the planned ones. It may already be due. */
  next: number | null;
}

/** Plans the slots that are due by now, starting with the slot `due`. */
export function planSlots(due: number, times: FireTimes, now: number): SlotPlan {
  const slots = [due];
  let next = times.next(due);
  while (next !== null && next <= now && slots.length < maxSlots) {
    slots.push(next);
    next = times.next(next);
  }
  if (next !== null && next <= now) return { missed: slots, newest: null, next };
  const slot = slots.pop() ?? due;
  return { missed: slots, newest: { slot, inTime: now - slot <= graceMs }, next };
}
