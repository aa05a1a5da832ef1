import { expect, test } from "vitest";
import type { RunEvent } from "../../model/event.ts";
import type { Journal } from "./journal.ts";
import { createJournalSink } from "./journal-sink.ts";

test("delays only the start and the end of a run, not the events that readers wait for", () => {
  const calls: string[] = [];
  const sink = createJournalSink({
    journal: { append: ({ type }: RunEvent) => calls.push(type) > 0 } as unknown as Journal, // The sink only appends.
    notify: () => calls.push("notify"),
    notifyLater: () => calls.push("notifyLater"),
    onFull: () => calls.push("full"),
    onWriteError: () => calls.push("write error"),
  });
  sink({ type: "status", status: "running" });
  sink({ type: "output", stream: "stdout", text: "x" });
  sink({ type: "progress", percent: 1 });
  expect(calls).toEqual(["status", "notifyLater", "output", "notify", "progress", "notify"]);
});
