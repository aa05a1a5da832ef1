import { type Fields, fieldsOf, numberOf, textOf } from "../clients/fields.ts";

/** Watches for the usage limit of the account, which ends by itself at a known time. */
export function createUsageLimit() {
  let resetsAt: number | null = null;
  return {
    note(message: Fields): void {
      if (message["type"] !== "rate_limit_event") return;
      const info = fieldsOf(message["rate_limit_info"]);
      // a later request may be allowed again: by another limit, or after a wait
      resetsAt = info["status"] === "rejected" ? numberOf(info["resetsAt"]) : null;
    },
    /** When the limit that ended the run is over, as ISO 8601; null where no limit ended it, or nobody said when. */
    until(result: Fields): string | null {
      if (result["is_error"] !== true) return null;
      const seconds = resetsAt ?? secondsIn(textOf(result["result"]));
      return seconds === null ? null : new Date(seconds * 1000).toISOString();
    },
  };
}

/** As older versions of Claude Code write it: `Claude AI usage limit reached|1794965918`. */
function secondsIn(text: string): number | null {
  const found = /limit reached\|(\d{10})\b/.exec(text)?.[1];
  return found === undefined ? null : Number(found);
}
