/** Largest difference between the time in a run_id and its created_at. */
const slackMs = 24 * 60 * 60 * 1000;

/**
 * A uuidv7 begins with its time, so a time range is a range of ids and needs no extra index. The range is a day wider on
 * either side; created_at filters exactly.
 */
export function uuidTimeBounds(
  since: string | undefined,
  until: string | undefined,
): { least: string | null; most: string | null } {
  return {
    least: since === undefined ? null : prefix(Date.parse(since) - slackMs),
    most: until === undefined ? null : `${prefix(Date.parse(until) + slackMs)}~`,
  };
}

function prefix(time: number): string {
  const hex = Math.max(0, Math.min(time, 0xffffffffffff)).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}
