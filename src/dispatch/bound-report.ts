import type { NumberedEvent } from "../model/event.ts";
import { replaceLargeEvent, estimateJsonSize } from "../model/event-size.ts";
import type { ReportRequest } from "../model/runner-port.ts";

/** Limits for one report, which is stored in one transaction. All other writers wait for it. */
const maxEvents = 500;
const maxLength = 1024 * 1024;
const maxWrites = 500;
const maxPartialLength = 1024 * 1024;

/**
 * Replaces events that are too large: if one were rejected, the runner would send it forever. Only large requests contain
 * such events, and checking them takes milliseconds, so this runs in the thread that reads large bodies.
 */
export function replaceLargeEvents(request: ReportRequest): ReportRequest {
  const events = request.events.map(({ events: received, ...attempt }) => ({
    ...attempt,
    events: received.map(replaceLargeEvent),
  }));
  return { ...request, events };
}

/** Truncates a report to the size that is processed at once. The rest is not acknowledged, so the runner sends it again. */
export function boundReport(request: ReportRequest): ReportRequest {
  const events: ReportRequest["events"] = [];
  let [remainingEvents, remainingLength] = [maxEvents, maxLength];
  for (const { events: received, ...attempt } of request.events) {
    if (events.length >= maxWrites || remainingEvents <= 0 || remainingLength <= 0) break;
    const accepted: NumberedEvent[] = [];
    for (const numbered of received) {
      if (remainingEvents <= 0 || remainingLength <= 0) break;
      remainingEvents -= 1;
      remainingLength -= estimateJsonSize(numbered.event, maxLength);
      accepted.push(numbered);
    }
    events.push({ ...attempt, events: accepted });
  }
  let remainingPartialLength = maxPartialLength;
  const partials = request.partials.filter(({ delta }) => (remainingPartialLength -= delta.text.length) >= 0);
  return { ...request, events, partials, finishes: request.finishes.slice(0, maxWrites).map(boundFinish) };
}

/** Messages are kept short, because every listing of runs contains them. */
const maxMessageLength = 10_000;

function boundFinish(finish: ReportRequest["finishes"][number]): ReportRequest["finishes"][number] {
  const { outcome } = finish;
  if (!("message" in outcome) || (outcome.message?.length ?? 0) <= maxMessageLength) return finish;
  // Never end with half of a surrogate pair.
  const message = `${outcome.message?.slice(0, maxMessageLength).replace(/[\ud800-\udbff]$/, "")}…`;
  return { ...finish, outcome: { ...outcome, message } };
}
