import { expect, it } from "vitest";
import type { ExecutionEnd } from "../model/execution.ts";
import { createInterruptedEnd } from "../model/interrupted-end.ts";
import type { StoredEvent } from "../model/event.ts";
import { describeEvent } from "./event-line.ts";

const end = createInterruptedEnd("x", "2026-11-18T12:00:00Z", "The runner died.");

it.each<[string, Partial<ExecutionEnd>]>([
  ["ended with 3", { exit_code: 3, interrupted: false }],
  ["ended with SIGKILL", { signal: "SIGKILL", interrupted: false }],
  ["could not start", { interrupted: false }],
  ["ended with no exit code", {}],
])("describes an execution that %s", (line, fields) => {
  // Only the event is used here.
  const stored = { event: { type: "execution_ended", execution: { ...end, ...fields } } } as StoredEvent;
  expect(describeEvent(stored)).toBe(line);
});
