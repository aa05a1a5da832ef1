import type { NumberedEvent } from "../model/event.ts";
import { boundEvent, estimateJsonSize } from "../model/event-size.ts";
import type { ReportRequest } from "../model/runner-port.ts";

/** Limits for one report. It is one transaction, and all other writers wait for it. */
const maxEvents = 2000;
const maxLength = 4 * 1024 * 1024;
const maxWrites = 500;
const maxPartialLength = 1024 * 1024;

/**
 * Cuts a report to the size that is processed at once. The rest is not acknowledged, so the runner sends it again. An
 * event that is too large is replaced; if it were rejected, the runner would send it forever.
 */
export function boundReport(request: ReportRequest): ReportRequest {
  const events: ReportRequest["events"] = [];
  let [remainingEvents, remainingLength] = [maxEvents, maxLength];
  for (const { events: received, ...attempt } of request.events) {
    if (events.length >= maxWrites || remainingEvents <= 0 || remainingLength <= 0) break;
    const accepted: NumberedEvent[] = [];
    for (const numbered of received) {
      if (remainingEvents <= 0 || remainingLength <= 0) break;
      const bounded = boundEvent(numbered);
      remainingEvents -= 1;
      remainingLength -= estimateJsonSize(bounded.event);
      accepted.push(bounded);
    }
    events.push({ ...attempt, events: accepted });
  }
  let remainingPartialLength = maxPartialLength;
  const partials = request.partials.filter(({ delta }) => (remainingPartialLength -= delta.text.length) >= 0);
  return { ...request, events, partials, finishes: request.finishes.slice(0, maxWrites).map(boundFinish) };
}

/** Short, because every listing of runs contains it. */
const maxMessageLength = 10_000;

function boundFinish(finish: ReportRequest["finishes"][number]): ReportRequest["finishes"][number] {
  const { outcome } = finish;
  if (!("message" in outcome) || (outcome.message?.length ?? 0) <= maxMessageLength) return finish;
  // never end with half of a surrogate pair
  const message = `${outcome.message?.slice(0, maxMessageLength).replace(/[\ud800-\udbff]$/, "")}…`;
  return { ...finish, outcome: { ...outcome, message } };
}
