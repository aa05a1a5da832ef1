import { expect, test } from "vitest";
import { executionEnded, executionStarted, sampleId } from "../../../test/fixtures/record/sample.ts";
import type { RunEvent } from "../../model/event.ts";
import { getDisplayBytes } from "../../model/output.ts";
import { createRedactor } from "../../redact/redactor.ts";
import { createRecorder } from "./recorder.ts";

const secret = "hunter2-hunter2-hunter2";
const [firstId, secondId] = [sampleId(), sampleId()];

function setUp() {
  const events: RunEvent[] = [];
  const recorder = createRecorder({
    sink: (event) => void events.push(event),
    redactor: createRedactor({ variables: {}, values: [{ name: "PW", value: secret }] }),
    outputDelayMs: 1_000_000,
  });
  const sampleStart = (id: string) => executionStarted(id) as Extract<RunEvent, { type: "execution_started" }>;
  const sampleEnd = (id: string) => executionEnded(id) as Extract<RunEvent, { type: "execution_ended" }>;
  return {
    events,
    recorder,
    start: (id: string) => recorder.recordStart({ ...sampleStart(id).execution, command: `echo ${secret}` }),
    end: (id: string) => recorder.recordEnd(sampleEnd(id).execution),
    types: () => events.map(({ type }) => type),
    output: () =>
      Buffer.concat(events.flatMap((event) => (event.type === "output" ? [getDisplayBytes(event)] : []))).toString(),
  };
}

test("redacts starts, and returns them as recorded", () => {
  const { events, start } = setUp();
  const recorded = start(firstId);
  expect(recorded.command).toBe("echo [redacted:PW]");
  expect(events).toEqual([{ type: "execution_started", execution: recorded }]);
});

test("writes held-back output before the end of the last execution, and no earlier", () => {
  const { recorder, start, end, types, output } = setUp();
  start(firstId);
  start(secondId);
  recorder.output("stdout", Buffer.from(secret.slice(0, 12)));
  end(firstId);
  recorder.output("stdout", Buffer.from(`${secret.slice(12)} hunter2-h`));
  end(secondId);
  expect(output()).toBe("[redacted:PW] hunter2-h");
  expect(types()).toEqual(["execution_started", "execution_started", "execution_ended", "output", "execution_ended"]);
});
