import type { FireTimes } from "../define/fire-times.ts";

/** A slot fires up to this much later than it was due; a later one was missed. */
export const graceMs = 60_000;
/** Decided by one operation. */
const mostAtOnce = 500;

export interface SlotPlan {
  /** Slots that are over, as newer ones are due too. */
  missed: number[];
  /** The newest that is due; null where there are more than can be decided at once. */
  newest: { slot: number; inTime: boolean } | null;
  /** Due next, maybe already. */
  next: number | null;
}

/** What is due by now, of a schedule whose next slot was `due`. */
export function planSlots(due: number, times: FireTimes, now: number): SlotPlan {
  const slots = [due];
  let next = times.next(due);
  while (next !== null && next <= now && slots.length < mostAtOnce) {
    slots.push(next);
    next = times.next(next);
  }
  if (next !== null && next <= now) return { missed: slots, newest: null, next };
  const slot = slots.pop() ?? due;
  return { missed: slots, newest: { slot, inTime: now - slot <= graceMs }, next };
}
