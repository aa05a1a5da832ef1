import type { SlotTimes } from "../define/slot-times.ts";

/** How late a slot's run may start. After that the slot counts as missed. */
export const graceMs = 60_000;
/** The number of slots that one operation settles. */
const maxSlots = 500;

export interface SlotPlan {
  /** Slots that are too old, because a newer one is due too. */
  missed: number[];
  /** The newest due slot; null if there are more slots than can be settled at once. */
  newest: { slot: number; isInTime: boolean } | null;
  /** The first slot after the planned ones. It may already be due. */
  next: number | null;
}

/** Plans the slots that are due by now, starting with the slot `due`. */
export function planSlots(due: number, times: SlotTimes, now: number): SlotPlan {
  const slots = [due];
  let next = times.next(due);
  while (next !== null && next <= now && slots.length < maxSlots) {
    slots.push(next);
    next = times.next(next);
  }
  if (next !== null && next <= now) return { missed: slots, newest: null, next };
  const slot = slots.pop() ?? due;
  return { missed: slots, newest: { slot, isInTime: now - slot <= graceMs }, next };
}
