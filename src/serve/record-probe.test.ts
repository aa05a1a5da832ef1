import { afterEach, expect, test, vi } from "vitest";
import { createRecordProbe } from "./record-probe.ts";

afterEach(() => void vi.useRealTimers());

test("probes the record once for many callers, and again when the result is old", async () => {
  let probes = 0;
  vi.useFakeTimers();
  const probe = createRecordProbe(async () => (probes += 1), { freshMs: 50 });
  expect(await Promise.all(Array.from({ length: 100 }, () => probe.findError()))).toEqual(Array(100).fill(null));
  expect([await probe.findError(), probes]).toEqual([null, 1]);
  vi.advanceTimersByTime(50);
  expect([await probe.findError(), probes]).toEqual([null, 2]);
});

test("waits for a silent record once, and recovers as soon as it responds", async () => {
  let probes = 0;
  let respond: () => void = () => undefined;
  const probeRecord = () => ((probes += 1), new Promise<void>((resolve) => (respond = resolve)));
  const probe = createRecordProbe(probeRecord, { freshMs: 60_000, timeoutMs: 200 });
  vi.useFakeTimers();
  const results = Promise.all([probe.findError(), probe.findError()]);
  await vi.advanceTimersByTimeAsync(200);
  const errors = await results;
  for (const error of errors) expect(error).toMatchObject({ code: "DROVER-STA-010" });
  // The fake timers stand still, so a second wait would never end.
  for (let index = 0; index < 100; index += 1) expect(await probe.findError()).not.toBeNull();
  respond();
  expect([await probe.findError(), probes]).toEqual([null, 1]);
});

test("returns the error until the record works again", async () => {
  let error: Error | null = new Error("away");
  const probeRecord = async () => {
    if (error !== null) throw error;
  };
  const probe = createRecordProbe(probeRecord, { freshMs: 1 });
  expect(await probe.findError()).toBe(error);
  error = null;
  await expect.poll(() => probe.findError()).toBeNull();
});
