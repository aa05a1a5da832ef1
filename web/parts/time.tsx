import { useSyncExternalStore } from "react";

/** The callbacks of all components that show the current time. One timer serves the whole page. */
const tickers = new Set<() => void>();
let now = Date.now();
setInterval(() => {
  now = Date.now();
  for (const tick of tickers) tick();
}, 1000);

export function useNow(): number {
  return useSyncExternalStore(
    (tick) => {
      tickers.add(tick);
      return () => tickers.delete(tick);
    },
    () => now,
  );
}

/** Shows the time since `at`, with the exact time on hover. */
export function Age({ at, suffix = "" }: { at: string; suffix?: string }) {
  const ageMs = useNow() - Date.parse(at);
  return (
    <time dateTime={at} title={formatDateTime(at)}>
      {formatShortDuration(ageMs)}
      {ageMs < 5000 ? "" : suffix}
    </time>
  );
}

/** Shows the time until `at`, with the exact time on hover. */
export function TimeUntil({ at }: { at: string }) {
  const remainingMs = Date.parse(at) - useNow();
  return (
    <time dateTime={at} title={formatDateTime(at)}>
      {remainingMs < 1000
        ? "now"
        : `in ${remainingMs < 5000 ? `${Math.floor(remainingMs / 1000)}s` : formatRemainingTime(remainingMs)}`}
    </time>
  );
}

/** Shows the time from start to end. Without an end, the time keeps counting. */
export function Duration({ from, to }: { from: string | null; to: string | null }) {
  const current = useNow();
  if (from === null) return <>—</>;
  return (
    <span title={formatDateTime(from)}>
      {formatDuration((to === null ? Math.max(current, Date.parse(from)) : Date.parse(to)) - Date.parse(from))}
    </span>
  );
}

export function formatDateTime(at: string): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** The browser's timezone. */
export const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Formats a time with its zone, since offsets change with daylight saving. Uses UTC if the browser does not know the zone. */
export function formatInZone(at: string, timeZone: string): string {
  const supportedZone = isKnownZone(timeZone) ? timeZone : "UTC";
  return new Date(at).toLocaleString(undefined, {
    timeZone: supportedZone,
    weekday: "short",
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
    timeZoneName: "short",
  });
}

export function isKnownZone(timeZone: string): boolean {
  try {
    Intl.DateTimeFormat(undefined, { timeZone });
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** Formats a duration in its largest unit, such as `3m`, or as `now` below five seconds. */
export function formatShortDuration(ms: number): string {
  return toLargestUnit(ms, Math.floor);
}

/** Like formatShortDuration, but rounds to the nearest unit, so that seven days do not become `6d` after a second. */
export function formatRemainingTime(ms: number): string {
  return toLargestUnit(ms, Math.round);
}

function toLargestUnit(ms: number, round: (value: number) => number): string {
  if (ms < 5000) return "now";
  const [seconds, minutes, hours] = [round(ms / 1000), round(ms / 60_000), round(ms / 3_600_000)];
  if (seconds < 60) return `${seconds}s`;
  if (minutes < 60) return `${minutes}m`;
  if (hours < 24) return `${hours}h`;
  return `${round(ms / 86_400_000)}d`;
}

/** Formats a precise duration, such as `850ms`, `4.2s` or `3m 05s`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds}s`;
  const [minutes, remainder] = [Math.floor(seconds / 60), seconds % 60];
  if (minutes < 60) return `${minutes}m ${String(remainder).padStart(2, "0")}s`;
  return `${Math.floor(minutes / 60)}h ${String(minutes % 60).padStart(2, "0")}m`;
}
