import type { RunEvent } from "../../model/event.ts";

/** Of several messages within this time only the newest is sent. */
const pauseMs = 250;
/** Clients that extend their timeout with each notification keep waiting through a long silence. */
const everyMs = 10_000;
const longest = 300;

export interface Progress {
  say(message: string): void;
  stop(): void;
}

export const silent: Progress = { say: () => undefined, stop: () => undefined };

/** Sends notifications with an increasing number, as MCP demands; there is no total, because nobody knows one. */
export function createProgress(notify: (progress: number, message: string) => Promise<void>): Progress {
  let sent = 0;
  let message = "";
  let hasNews = false;
  let stopped = false;
  let pause: NodeJS.Timeout | null = null;
  const repeat = setInterval(send, everyMs);
  return { say, stop };

  function say(text: string): void {
    const line = text.trim().split("\n", 1)[0] ?? "";
    if (line === "" || stopped) return;
    message = line.length > longest ? `${line.slice(0, longest)}...` : line;
    hasNews = true;
    if (pause === null) send();
  }

  function send(): void {
    hasNews = false;
    if (pause !== null) clearTimeout(pause);
    pause = setTimeout(() => {
      pause = null;
      if (hasNews) send();
    }, pauseMs);
    // The client may be gone; the call itself notices that and ends.
    notify(++sent, message).catch(stop);
  }

  function stop(): void {
    stopped = true;
    clearInterval(repeat);
    if (pause !== null) clearTimeout(pause);
  }
}

/** What a person watching would want to know of an event; null: nothing. */
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
      return `asks whether it may use ${event.tool}`;
    case "error":
      return event.message;
    default:
      return null;
  }
}
