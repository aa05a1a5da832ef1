import { expect, test } from "vitest";
import { createRedactor } from "../redact/redactor.ts";
import { createChunkReader, createOutputEvents, type OutputEvent } from "./output-events.ts";

/** Long enough for a busy machine: only a hang takes it. */
const poll = <T>(get: () => T | Promise<T>) => expect.poll(get, { timeout: 20_000, interval: 10 });

const redactor = createRedactor({ variables: { APP_TOKEN: "s3cret-value-123" } });

function setUp(delayMs = 1_000_000) {
  const events: OutputEvent[] = [];
  return { events, output: createOutputEvents({ redactor, delayMs, write: (event) => void events.push(event) }) };
}

const out = (text: string, stream: "stdout" | "stderr" = "stdout"): OutputEvent => ({ type: "output", stream, text });

test("pieces of one stream are joined, and the order of the streams stays", () => {
  const { events, output } = setUp();
  for (const event of [out("one\n"), out("two\n"), out("three\n", "stderr"), out("four\n")]) output.push(event);
  output.end();
  expect(events).toEqual([out("one\ntwo\n"), out("three\n", "stderr"), out("four\n")]);
});

test("what waits is written after the delay", async () => {
  const { events, output } = setUp(10);
  output.push(out("hello"));
  expect(events).toEqual([]);
  await poll(() => events).toEqual([out("hello")]);
  output.end();
});

test("64 KB are written at once, in events of at most that size, without breaking a character", () => {
  const { events, output } = setUp();
  const text = "é€😀".repeat(30_000);
  output.push(out(text));
  expect(events.length).toBeGreaterThan(3);
  output.end();
  expect(events.every((event) => Buffer.byteLength(event.text!) <= 65_536)).toBe(true);
  expect(events.map((event) => event.text).join("")).toBe(text);
});

test("a secret split over pieces is seen", () => {
  const { events, output } = setUp();
  for (const text of ["x s3cret", "-val", "ue-123 y"]) {
    output.push(out(text));
    output.flush();
  }
  output.end();
  expect(events.map((event) => event.text).join("")).toBe("x [redacted:APP_TOKEN] y");
});

test("bytes that are no text survive", () => {
  const { events, output } = setUp();
  const bytes = Buffer.from([0xff, 0xfe, 0x00, 0x80, 0xc3]);
  const reader = createChunkReader("stdout");
  for (const event of [...reader.push(bytes), ...reader.end()]) output.push(event);
  output.end();
  expect(
    Buffer.concat(
      events.map((event) =>
        event.base64 === undefined ? Buffer.from(event.text!) : Buffer.from(event.base64, "base64"),
      ),
    ),
  ).toEqual(bytes);
});
