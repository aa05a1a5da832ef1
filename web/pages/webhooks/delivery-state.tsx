import type { Delivery } from "../../data/queries.ts";
import { StatusMark } from "../../parts/status.tsx";

export function DeliveryState({ delivery: { status, attempts } }: { delivery: Delivery }) {
  if (status === "delivered") return <StatusMark icon="ok" tone="ok" status={status} label="Delivered" />;
  if (status === "failed") return <StatusMark icon="close" tone="bad" status={status} label="Failed" />;
  if (attempts === 0) return <StatusMark icon="idle" tone="idle" status={status} label="Pending" />;
  return <StatusMark icon="retry" tone="wait" status={status} label="Retrying" />;
}

/** Describes the receiver's response to the last attempt, or the error if there was none. */
export function describeResponse({ response_status, response, error }: Delivery): string {
  if (response_status === null) return error ?? "none yet";
  return [String(response_status), response].filter(Boolean).join(" ");
}
