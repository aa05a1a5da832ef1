import type { RunEvent } from "../../model/event.ts";

/** At most one notification is sent in this time, with the newest message. */
const throttleMs = 250;
/** The last message is repeated at this interval, for clients that extend their timeout with each notification. */
const repeatMs = 10_000;
const maxLength = 300;

export interface Progress {
  report(message: string): void;
  stop(): void;
}

export const noProgress: Progress = { report: () => undefined, stop: () => undefined };

/** Sends notifications with an increasing number, as MCP requires. There is no total, because it is unknown. */
export function createProgress(notify: (progress: number, message: string) => Promise<void>): Progress {
  let sentCount = 0;
  let message = "";
  let isPending = false;
  let isStopped = false;
  let throttle: NodeJS.Timeout | null = null;
  const repeat = setInterval(send, repeatMs);
  return { report, stop };

  function report(text: string): void {
    const line = text.trim().split("\n", 1)[0] ?? "";
    if (line === "" || isStopped) return;
    message = line.length > maxLength ? `${line.slice(0, maxLength)}...` : line;
    isPending = true;
    if (throttle === null) send();
  }

  function send(): void {
    isPending = false;
    if (throttle !== null) clearTimeout(throttle);
    throttle = setTimeout(() => {
      throttle = null;
      if (isPending) send();
    }, throttleMs);
    // The client may have disconnected. The call itself notices that and ends.
    notify(++sentCount, message).catch(stop);
  }

  function stop(): void {
    isStopped = true;
    clearInterval(repeat);
    if (throttle !== null) clearTimeout(throttle);
  }
}

/** Describes an event for someone watching; null if it is not worth showing. */
export function describeEvent(event: RunEvent): string | null {
  switch (event.type) {
    case "status":
      return event.reason === undefined ? event.status : `${event.status}: ${event.reason}`;
    case "progress":
      return event.message === undefined ? `${event.percent} %` : `${event.percent} %: ${event.message}`;
    case "assistant":
      return event.text;
    case "tool_use":
      return `uses ${event.name}`;
    case "permission_request":
      return `asks for permission to use ${event.tool}`;
    case "error":
      return event.message;
    default:
      return null;
  }
}
