import { type Cell, formatAge, type Tone } from "./table.ts";

/** Creates a cell for a time, which is relative on a terminal and exact in a pipe. */
export function toTimeCell(time: string | null, now: Date): Cell {
  return time === null ? "-" : { shown: formatAge(time, now), piped: time, tone: "dim" };
}

/** Creates a cell for a status. Only a terminal gets the icon and the colour. */
export function toStatusCell(status: string, reason?: string | null): Extract<Cell, { piped: string }> {
  const text = reason ? `${status}: ${reason}` : status;
  const style = statusStyles[status];
  return style ? { shown: `${style.icon} ${text}`, piped: text, tone: style.tone } : { shown: text, piped: text };
}

/** The states of runs, runners, tokens, webhooks and deliveries. */
const statusStyles: Readonly<Record<string, { icon: string; tone: Tone }>> = {
  ...withStyle("✓", "green", ["completed", "online", "valid", "enabled", "delivered"]),
  ...withStyle("✗", "red", ["failed", "lost", "revoked"]),
  ...withStyle("●", "cyan", ["running", "claimed", "stopping"]),
  ...withStyle("○", "dim", ["pending", "disabled", "used", "expired"]),
  ...withStyle("?", "yellow", ["waiting"]),
  ...withStyle("‖", "yellow", ["parked", "draining"]),
  ...withStyle("⊘", "yellow", ["cancelled"]),
};

function withStyle(icon: string, tone: Tone, statuses: readonly string[]) {
  return Object.fromEntries(statuses.map((status) => [status, { icon, tone }]));
}
