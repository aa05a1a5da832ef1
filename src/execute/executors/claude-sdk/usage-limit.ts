import { type Fields, toFields, toNumber, toText } from "../clients/fields.ts";

/** Watches for the account's usage limit, which resets at a known time. */
export function createUsageLimit() {
  let resetsAt: number | null = null;
  return {
    observe(message: Fields): void {
      if (message["type"] !== "rate_limit_event") return;
      const info = toFields(message["rate_limit_info"]);
      // A later request may succeed, under another limit or after a wait.
      resetsAt = info["status"] === "rejected" ? toNumber(info["resetsAt"]) : null;
    },
    /**
     * Returns when the limit that stopped the run resets, as ISO 8601; null if no limit stopped it or the time is
     * unknown.
     */
    getResetTime(result: Fields): string | null {
      if (result["is_error"] !== true) return null;
      const seconds = resetsAt ?? parseResetSeconds(toText(result["result"]));
      return seconds === null ? null : new Date(seconds * 1000).toISOString();
    },
  };
}

/** Reads the format of older Claude Code versions: `Claude AI usage limit reached|1794965918`. */
function parseResetSeconds(text: string): number | null {
  const seconds = /limit reached\|(\d{10})\b/.exec(text)?.[1];
  return seconds === undefined ? null : Number(seconds);
}
