import { type Cell, formatAge, type Tone } from "./table.ts";

/** A time: how long ago on a terminal, exact in a pipe. */
export function toTimeCell(time: string | null, now: Date): Cell {
  return time === null ? "-" : { shown: formatAge(time, now), piped: time, tone: "dim" };
}

/** A status as icon, word and colour on a terminal, and as words in a pipe. */
export function toStatusCell(status: string, reason?: string | null): Extract<Cell, { piped: string }> {
  const text = reason ? `${status}: ${reason}` : status;
  const mark = marks[status];
  return mark ? { shown: `${mark.icon} ${text}`, piped: text, tone: mark.tone } : { shown: text, piped: text };
}

/** The states of runs, runners, tokens, webhooks and deliveries. */
const marks: Readonly<Record<string, { icon: string; tone: Tone }>> = {
  ...withMark("✓", "green", ["completed", "online", "valid", "enabled", "delivered"]),
  ...withMark("✗", "red", ["failed", "lost", "revoked"]),
  ...withMark("●", "cyan", ["running", "claimed", "stopping"]),
  ...withMark("○", "dim", ["pending", "disabled", "used", "expired"]),
  ...withMark("?", "yellow", ["waiting"]),
  ...withMark("‖", "yellow", ["parked", "draining"]),
  ...withMark("⊘", "yellow", ["cancelled"]),
};

function withMark(icon: string, tone: Tone, statuses: readonly string[]) {
  return Object.fromEntries(statuses.map((status) => [status, { icon, tone }]));
}
