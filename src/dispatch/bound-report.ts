import type { NumberedEvent } from "../model/event.ts";
import { boundEvent, estimateJsonSize } from "../model/event-size.ts";
import type { ReportRequest } from "../model/runner-port.ts";

/** Limits for one report. It is one transaction, and all other writers wait for it. */
const mostEvents = 2000;
const mostLength = 4 * 1024 * 1024;
const mostWrites = 500;
const mostPartialLength = 1024 * 1024;

/**
 * Cuts a report to the size that is processed at once. The rest is not acknowledged, so the runner sends it again. An
 * event that is too large is replaced; if it were rejected, the runner would send it forever.
 */
export function boundReport(request: ReportRequest): ReportRequest {
  const events: ReportRequest["events"] = [];
  let [left, length] = [mostEvents, mostLength];
  for (const { events: brought, ...of } of request.events) {
    if (events.length >= mostWrites || left <= 0 || length <= 0) break;
    const taken: NumberedEvent[] = [];
    for (const numbered of brought) {
      if (left <= 0 || length <= 0) break;
      const bounded = boundEvent(numbered);
      left -= 1;
      length -= estimateJsonSize(bounded.event);
      taken.push(bounded);
    }
    events.push({ ...of, events: taken });
  }
  let room = mostPartialLength;
  const partials = request.partials.filter(({ delta }) => (room -= delta.text.length) >= 0);
  return { ...request, events, partials, finishes: request.finishes.slice(0, mostWrites).map(boundFinish) };
}

/** Short, because every listing of runs contains it. */
const mostMessageLength = 10_000;

function boundFinish(finish: ReportRequest["finishes"][number]): ReportRequest["finishes"][number] {
  const { outcome } = finish;
  if (!("message" in outcome) || (outcome.message?.length ?? 0) <= mostMessageLength) return finish;
  // never end with half of a surrogate pair
  const message = `${outcome.message?.slice(0, mostMessageLength).replace(/[\ud800-\udbff]$/, "")}…`;
  return { ...finish, outcome: { ...outcome, message } };
}
