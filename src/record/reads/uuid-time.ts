/** The largest difference between the time in a run_id and its created_at. */
const slackMs = 24 * 60 * 60 * 1000;

/**
 * A uuidv7 begins with its time, so a time range is a range of ids and needs no extra index. The range is a day wider on
 * either side, so callers also filter by created_at.
 */
export function toUuidTimeBounds(
  since: string | undefined,
  until: string | undefined,
): { min: string | null; max: string | null } {
  return {
    min: since === undefined ? null : toUuidPrefix(Date.parse(since) - slackMs),
    max: until === undefined ? null : `${toUuidPrefix(Date.parse(until) + slackMs)}~`,
  };
}

function toUuidPrefix(time: number): string {
  const hex = Math.max(0, Math.min(time, 0xffffffffffff)).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}
