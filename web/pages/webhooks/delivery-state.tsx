import type { Delivery } from "../../data/queries.ts";
import { Mark } from "../../parts/status.tsx";

export function DeliveryState({ delivery: { status, attempts } }: { delivery: Delivery }) {
  if (status === "delivered") return <Mark icon="ok" tone="ok" status={status} word="Delivered" />;
  if (status === "failed") return <Mark icon="bad" tone="bad" status={status} word="Failed" />;
  if (attempts === 0) return <Mark icon="idle" tone="idle" status={status} word="Pending" />;
  return <Mark icon="again" tone="wait" status={status} word="Retrying" />;
}

/** The receiver's response to the last attempt, or the error if there was none. */
export function answerOf({ response_status, response, error }: Delivery): string {
  if (response_status === null) return error ?? "none yet";
  return [String(response_status), response].filter(Boolean).join(" ");
}
