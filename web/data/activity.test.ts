import { expect, test } from "vitest";
import type { StoredEvent } from "../../src/model/event.ts";
import { type Activity, createActivityReader, getResultText } from "./activity.ts";

const call = { type: "tool_use", tool_use_id: "call_1", name: "command.run", input: { command: "date" } } as const;
const question = {
  type: "permission_request",
  request_id: "call_1",
  tool: "command.run",
  input: { command: "date" },
} as const;
const approval = { type: "permission_decision", request_id: "call_1", decision: "allow", by: "ann" } as const;
const answer = { type: "tool_result", tool_use_id: "call_1", is_error: false, output: "today" } as const;
const result = {
  type: "result",
  status: "completed",
  reason: null,
  error: null,
  exit_code: null,
  result_text: "Done.",
  result_data: null,
} as const;

test("shows the output of a tool whose question has the same id", () => {
  const activity = read([1, call], [1, question], [null, approval], [1, answer]);
  expect(findTools(activity)).toMatchObject([{ output: "today", to: 3000 }]);
  expect(activity).toContainEqual(expect.objectContaining({ kind: "question", decision: "allow", to: 2000 }));
});

test("shows the output of a tool that was approved while its run was parked", () => {
  const activity = read([1, call], [1, question], [null, approval], [2, answer], [2, result]);
  expect(findTools(activity)).toMatchObject([{ output: "today", to: 3000 }]);
});

test("closes everything in progress when the run ends, including tools that share an id", () => {
  const activity = read([1, call], [1, call], [1, question], [1, result]);
  expect(findTools(activity)).toHaveLength(2);
  expect(activity.filter(({ to }) => to === null)).toEqual([]);
});

test("the text of a result is shown beside its data, unless it only repeats the data", () => {
  expect(getResultText({ result_text: "6 words", result_data: { to: 2 } })).toBe("6 words");
  expect(getResultText({ result_text: '{ "to": 2 }\n', result_data: { to: 2 } })).toBeNull();
  expect(getResultText({ result_text: "6 words", result_data: null })).toBe("6 words");
  expect(getResultText({ result_text: null, result_data: { to: 2 } })).toBeNull();
});

/** Reads events, each with its attempt. Those of the coordinator have none. One second passes between two events. */
function read(...events: readonly (readonly [number | null, StoredEvent["event"]])[]): readonly Activity[] {
  return createActivityReader()(
    events.map(([attempt, event], index) => ({
      run_id: "run",
      cursor: index + 1,
      seq: index + 1,
      attempt: attempt ?? 1,
      n: attempt === null ? null : index + 1,
      at: new Date(index * 1000).toISOString(),
      event,
    })),
  );
}

function findTools(activity: readonly Activity[]): readonly Activity[] {
  return activity.filter(({ kind }) => kind === "tool");
}
